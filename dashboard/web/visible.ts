// Texts of the cluster, without characters that hide or reorder others. An image or a message may have them to look like another one.

const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029\u{e0000}-\u{e0fff}]/gu;
/** What JSON has instead of the first 32 characters, or one of the others as it is. */
const MAY_HIDE = /\\u00[01]|\\[bf]|[\p{Cf}\u007f-\u009f\u2028\u2029\u{e0000}-\u{e0fff}]/u;

function visible(text: string): string {
  return text.replace(HIDDEN, (character) =>
    character === "\n" || character === "\t" ? character : `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

/** Parses an answer of the server. Hidden characters in its texts are written as escapes. */
export function parse(json: string): any {
  if (!MAY_HIDE.test(json)) return JSON.parse(json);
  return JSON.parse(json, (_, value) => (typeof value === "string" ? visible(value) : value));
}
