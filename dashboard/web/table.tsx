// A table in pages, so that 15,000 rows stay light and every row can be reached with the keyboard.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

const ROWS = 50;

export interface Column<T> {
  title: string;
  of: (row: T) => ComponentChildren;
  class?: string;
}

export function Table<T>(props: {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string;
  none: string;
}) {
  const { rows } = props;
  const [page, setPage] = useState(0);
  const pages = Math.max(1, Math.ceil(rows.length / ROWS));
  useEffect(() => {
    if (page >= pages) setPage(pages - 1);
  }, [pages, page]);
  const from = page * ROWS;
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label={props.caption}>
        <table>
          <caption class="hidden">{props.caption}</caption>
          <thead>
            <tr>
              {props.columns.map((column) => (
                <th scope="col" key={column.title} class={column.class}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(from, from + ROWS).map((row) => (
              <tr key={props.id(row)}>
                {props.columns.map((column) => (
                  <td key={column.title} class={column.class}>
                    {column.of(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="note">{props.none}</p>}
      </div>
      {pages > 1 && (
        <nav class="pages" aria-label={`Pages of ${props.caption}`}>
          <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
            Previous
          </button>
          <span>
            {from + 1}–{Math.min(from + ROWS, rows.length)} of {rows.length}
          </span>
          <button type="button" disabled={page >= pages - 1} onClick={() => setPage(page + 1)}>
            Next
          </button>
        </nav>
      )}
    </>
  );
}
