// Requests to the server. With a session the browser sends the cookie; otherwise each request has the caller's bearer token and the
// namespaces that the caller names, which are kept only in this tab.

import { parse } from "./visible";

/** What a caller has signed in with. A proxy may send the token instead. */
export interface Caller {
  token: string;
  /** Separated by commas. Empty: all. */
  namespaces: string;
}

const TOKEN = "nodewise-token";
const NAMESPACES = "nodewise-namespaces";

export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly mode?: string,
  ) {
    super(message);
  }
}

export const caller = (): Caller => ({
  token: sessionStorage.getItem(TOKEN) ?? "",
  namespaces: sessionStorage.getItem(NAMESPACES) ?? "",
});

export function setCaller({ token, namespaces }: Caller): void {
  for (const [key, value] of [
    [TOKEN, token],
    [NAMESPACES, namespaces],
  ] as const) {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  }
}

/** Headers can only have Latin letters. The server says what is wrong with other ones. */
const encoded = (text: string) => text.replace(/[^\x20-\x7e]/g, "?");

export async function request(path: string, init: RequestInit = {}, from = caller()): Promise<Response> {
  const headers = new Headers(init.headers);
  const { token, namespaces } = from;
  if (token) headers.set("Authorization", `Bearer ${encoded(token)}`);
  if (namespaces) headers.set("Nodewise-Namespaces", encoded(namespaces));
  const response = await fetch(`/api/v1${path}`, { ...init, headers, cache: "no-store" });
  if (!response.ok) {
    const body = await response.text().then(parse).catch(() => ({}));
    throw new HttpError(response.status, body.error ?? `the server answers ${response.status}`, body.mode);
  }
  return response;
}

export interface SignedIn {
  ok: boolean;
  /** How callers sign in: `session` or `bearer`. Empty: the server has not said. */
  mode: string;
  /** 0: there is no answer. */
  status: number;
  error?: string;
}

/** Whether a caller of this browser is signed in; if not, why, and how it must. */
export async function signedIn(from = caller()): Promise<SignedIn> {
  try {
    const response = await request("/session", {}, from);
    return { ok: true, mode: (await response.json()).mode, status: response.status };
  } catch (error) {
    if (error instanceof HttpError) return { ok: false, mode: error.mode ?? "", status: error.status, error: error.message };
    return { ok: false, mode: "", status: 0, error: error instanceof Error ? error.message : String(error) };
  }
}
