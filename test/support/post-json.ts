/** Posts a body as JSON; a string is sent as it is. `headers` are added to the content type or replace it. */
export function postJson(
  url: string,
  body: object | string,
  { headers = {}, signal = null }: { headers?: Record<string, string>; signal?: AbortSignal | null } = {},
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal,
  });
}
