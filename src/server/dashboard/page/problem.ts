/** Problem of a request, as one sentence. */
export async function problemOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  const said = body?.error?.message ?? `The server answered with status ${response.status}.`;
  const seconds = retryAfterSeconds(response);
  if (seconds === 0) return said;
  const when = `try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
  return said.includes('try again later')
    ? said.replace('try again later', when)
    : `${said} T${when.slice(1)}.`;
}

/** Seconds that the server asks to wait; 0 where it does not say. */
export function retryAfterSeconds({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after'));
  return Number.isFinite(seconds) ? seconds : 0;
}
