// Times and names for people.

const seconds = (text: string): number => Number.parseFloat(text);

/** `3 s`, `4 min`, `2 h 5 min`, `3 d`. */
export function duration(total: number): string {
  const s = Math.max(0, Math.round(total));
  if (s < 100) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min`;
  const h = Math.floor(m / 60);
  if (h < 48) return m % 60 ? `${h} h ${m % 60} min` : `${h} h`;
  return `${Math.floor(h / 24)} d`;
}

export const ago = (time: string | undefined, now: number): string =>
  time ? duration((now - Date.parse(time)) / 1000) : "";

/** A duration of Protobuf, such as `12.5s`. */
export const left = (text: string | undefined): string => (text ? duration(seconds(text)) : "");

export const clock = (time: string): string =>
  new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** `RULE_MAX_UNAVAILABLE` → `max unavailable`. */
export const words = (constant: string | undefined, prefix: string): string =>
  (constant ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");

/** `agent=registry.example/agent:2` → `agent:2`. */
export function shortImage(image: string): string {
  const reference = image.slice(image.indexOf("=") + 1);
  return reference.slice(reference.lastIndexOf("/") + 1);
}
