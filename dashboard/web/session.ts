// Requests to the server. With a session the browser sends the cookie; otherwise each request has the caller's bearer token, which is kept
// only in this tab.

const TOKEN = "nodewise-token";

export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly mode?: string,
  ) {
    super(message);
  }
}

export const setToken = (token: string): void => sessionStorage.setItem(TOKEN, token);
export const clearToken = (): void => sessionStorage.removeItem(TOKEN);

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(`/api/v1${path}`, { ...init, headers, cache: "no-store" });
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new HttpError(response.status, body.error ?? `the server answers ${response.status}`, body.mode);
  }
  return response;
}

/** Whether this browser is signed in; if not, how it must. */
export async function signedIn(): Promise<{ ok: boolean; mode: string; error?: string }> {
  try {
    const body = await (await request("/session")).json();
    return { ok: true, mode: body.mode };
  } catch (error) {
    if (error instanceof HttpError && error.status === 401) {
      return { ok: false, mode: error.mode ?? "session", error: error.message };
    }
    throw error;
  }
}
