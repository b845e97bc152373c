// The grid of nodes or replicas. Each part of a group is a canvas that is drawn when it comes into view, so that scrolling draws little and
// data that changes is drawn only where it is seen.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { THEMED } from "./theme";
import { UNITS, UNIT_ORDER, unitOf } from "./states";
import type { UnitState } from "./types";

export interface Unit {
  name: string;
  state: UnitState;
  /** What groups it. */
  group: string;
  /** One sentence about it. */
  about: string;
  href?: string;
}

interface Group {
  name: string;
  units: Unit[];
  /** The index of the first unit among all. */
  from: number;
  bad: number;
}

/** The most rows of a canvas. */
const ROWS = 32;

const cellFor = (units: number): number => (units <= 200 ? 30 : units <= 600 ? 24 : units <= 2000 ? 17 : 12);

const shapes = new Map<UnitState, Path2D>();
const shapeOf = (state: UnitState): Path2D => {
  let shape = shapes.get(state);
  if (!shape) shapes.set(state, (shape = new Path2D(UNITS[state].shape)));
  return shape;
};

function draw(canvas: HTMLCanvasElement, units: Unit[], columns: number, cell: number, active: number): void {
  const scale = devicePixelRatio || 1;
  const rows = Math.ceil(units.length / columns);
  const [width, height] = [Math.round(columns * cell * scale), Math.round(rows * cell * scale)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d")!;
  const style = getComputedStyle(canvas);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  const [pad, unit] = [cell * 0.12, (cell * 0.76) / 10];
  for (const state of UNIT_ORDER) {
    context.fillStyle = style.getPropertyValue(UNITS[state].colour);
    const shape = shapeOf(state);
    units.forEach((one, index) => {
      if (one.state !== state) return;
      const [x, y] = [(index % columns) * cell + pad, Math.floor(index / columns) * cell + pad];
      context.setTransform(unit * scale, 0, 0, unit * scale, x * scale, y * scale);
      context.fill(shape, "evenodd");
    });
  }
  if (active >= 0 && active < units.length) {
    const [x, y] = [(active % columns) * cell, Math.floor(active / columns) * cell];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.strokeStyle = style.getPropertyValue("--focus");
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, cell - 2, cell - 2);
  }
}

function Part(props: { units: Unit[]; columns: number; cell: number; active: number; label: string }) {
  const ref = useRef<HTMLCanvasElement>(null);
  const seen = useRef(false);
  const latest = useRef(props);
  latest.current = props;
  const redraw = () => {
    const { units, columns, cell, active } = latest.current;
    if (ref.current && seen.current) draw(ref.current, units, columns, cell, active);
  };
  useEffect(() => {
    const watch = new IntersectionObserver(
      ([entry]) => {
        const was = seen.current;
        seen.current = entry!.isIntersecting;
        if (!was) redraw();
      },
      { root: ref.current!.closest(".grid"), rootMargin: "600px" },
    );
    watch.observe(ref.current!);
    // The colours depend on the theme.
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    addEventListener(THEMED, redraw);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", redraw);
      removeEventListener(THEMED, redraw);
    };
  }, []);
  useEffect(redraw);
  const rows = Math.ceil(props.units.length / props.columns);
  return (
    <canvas
      ref={ref}
      role="img"
      aria-label={props.label}
      style={{ width: `${props.columns * props.cell}px`, height: `${rows * props.cell}px` }}
    />
  );
}

/** The groups: those that `order` names first, the others by name. */
function groupsOf(units: Unit[], order: string[]): Group[] {
  const groups = new Map<string, Unit[]>();
  for (const unit of units) {
    const known = groups.get(unit.group);
    if (known) known.push(unit);
    else groups.set(unit.group, [unit]);
  }
  const ranks = new Map(order.map((name, index) => [name, index]));
  const rank = (name: string) => ranks.get(name) ?? order.length;
  const sorted = [...groups].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b, undefined, { numeric: true }));
  let from = 0;
  return sorted.map(([name, of]) => {
    const group = { name, units: of, from, bad: of.filter((one) => one.state === "UNIT_STATE_BLOCKED").length };
    from += of.length;
    return group;
  });
}

/** Where a key leads. */
function moved(key: string, active: number, columns: number, groups: Group[], total: number): number {
  const at = groups.findLast((group) => group.from <= active) ?? groups[0]!;
  const column = (active - at.from) % columns;
  switch (key) {
    case "ArrowLeft":
      return Math.max(0, active - 1);
    case "ArrowRight":
      return Math.min(total - 1, active + 1);
    case "Home":
      return 0;
    case "End":
      return total - 1;
    case "ArrowDown": {
      if (active + columns < at.from + at.units.length) return active + columns;
      const next = groups[groups.indexOf(at) + 1];
      const lastRow = Math.floor((at.units.length - 1) / columns);
      if (Math.floor((active - at.from) / columns) < lastRow) return at.from + at.units.length - 1;
      return next ? next.from + Math.min(column, next.units.length - 1) : active;
    }
    case "ArrowUp": {
      if (active - columns >= at.from) return active - columns;
      const before = groups[groups.indexOf(at) - 1];
      if (!before) return active;
      const lastRow = Math.floor((before.units.length - 1) / columns) * columns;
      return before.from + Math.min(lastRow + column, before.units.length - 1);
    }
    default:
      return -1;
  }
}

export function Grid(props: { units: Unit[]; label: string; order?: string[]; onOpen: (unit: Unit) => void }) {
  const { units, order } = props;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [active, setActive] = useState(-1);
  const [hovered, setHovered] = useState<{ unit: Unit; x: number; y: number } | null>(null);
  const groups = useMemo(() => groupsOf(units, order ?? []), [units, order]);
  const flat = useMemo(() => groups.flatMap((group) => group.units), [groups]);
  const cell = cellFor(units.length);
  const columns = Math.max(1, Math.floor((width - 2) / cell));
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && flat[active]) {
      event.preventDefault();
      props.onOpen(flat[active]!);
      return;
    }
    const next = flat.length ? moved(event.key, Math.max(active, 0), columns, groups, flat.length) : -1;
    if (next < 0) return;
    event.preventDefault();
    setActive(active < 0 ? 0 : next);
    reveal(active < 0 ? 0 : next);
  };
  const reveal = (index: number) => {
    const group = groups.findLast((one) => one.from <= index)!;
    const header = box.current!.querySelector<HTMLElement>(`[data-from="${group.from}"]`);
    if (!header) return;
    const y = header.offsetTop + header.offsetHeight + Math.floor((index - group.from) / columns) * cell;
    const view = box.current!;
    if (y < view.scrollTop + cell) view.scrollTop = Math.max(0, y - cell * 2);
    else if (y + 2 * cell > view.scrollTop + view.clientHeight) view.scrollTop = y + 2 * cell - view.clientHeight;
  };
  const at = (event: MouseEvent): Unit | null => {
    const canvas = event.target as HTMLElement;
    if (canvas.tagName !== "CANVAS") return null;
    const [column, row] = [Math.floor(event.offsetX / cell), Math.floor(event.offsetY / cell)];
    const from = Number(canvas.parentElement!.dataset.first);
    if (column >= columns) return null;
    const group = Number(canvas.parentElement!.dataset.until);
    const index = from + row * columns + column;
    return index < group ? flat[index]! : null;
  };
  const current = flat[active];
  return (
    <div class="grid-frame">
      <div
        class="grid"
        ref={box}
        tabIndex={0}
        role="application"
        aria-label={`${props.label}. Arrow keys move, Enter opens.`}
        onKeyDown={press}
        onBlur={() => setActive(-1)}
        onMouseMove={(event) => {
          const unit = at(event);
          const frame = box.current!.getBoundingClientRect();
          setHovered(unit && { unit, x: event.clientX - frame.left, y: event.clientY - frame.top });
        }}
        onMouseLeave={() => setHovered(null)}
        onClick={(event) => {
          const unit = at(event);
          if (unit) props.onOpen(unit);
        }}
      >
        {width > 0 &&
          groups.map((group) => (
            <div key={group.name} class="grid-group">
              <div class="grid-head" data-from={group.from}>
                <b>{group.name}</b> {group.units.length}
                {group.bad > 0 && <span class="bad"> · {group.bad} blocked</span>}
              </div>
              {chunks(group.units, ROWS * columns).map((part, index) => {
                const first = group.from + index * ROWS * columns;
                return (
                  <div key={index} data-first={first} data-until={first + part.length}>
                    <Part
                      units={part}
                      columns={columns}
                      cell={cell}
                      active={active - first}
                      label={summary(group.name, part)}
                    />
                  </div>
                );
              })}
            </div>
          ))}
      </div>
      {hovered && (
        <div class="tip" style={{ left: `${hovered.x + 14}px`, top: `${hovered.y + 14}px` }}>
          <b>{hovered.unit.name}</b> {UNITS[hovered.unit.state].word}
          <div>{hovered.unit.about}</div>
        </div>
      )}
      <p class="grid-says" aria-live="polite">
        {current ? `${current.name}: ${UNITS[current.state].word}. ${current.about}` : ""}
      </p>
    </div>
  );
}

function chunks(units: Unit[], size: number): Unit[][] {
  const parts: Unit[][] = [];
  for (let from = 0; from < units.length; from += size) parts.push(units.slice(from, from + size));
  return parts;
}

function summary(group: string, units: Unit[]): string {
  const counts = UNIT_ORDER.map((state) => [units.filter((one) => unitOf(one.state) === state).length, state] as const);
  const text = counts.filter(([count]) => count).map(([count, state]) => `${count} ${UNITS[state].word}`);
  return `${group}: ${text.join(", ")}`;
}
