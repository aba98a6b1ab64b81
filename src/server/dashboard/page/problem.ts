/** What went wrong with a request, as one sentence. */
export async function problemOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  const said = body?.error?.message ?? `The server answered with status ${response.status}.`;
  const wait = Number(response.headers.get('retry-after'));
  if (wait > 0 && (response.status === 429 || response.status === 503)) {
    return `${said} Try again in ${wait} ${wait === 1 ? 'second' : 'seconds'}.`;
  }
  return said;
}
