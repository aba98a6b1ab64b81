/** Problem of a request, as one sentence, with the time after which to try again. */
export async function problemOf(response: Response): Promise<string> {
  const said = await saidOf(response);
  const seconds = retryAfterSeconds(response);
  if (seconds === 0) return said;
  const when = `try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
  return said.includes('try again later')
    ? said.replace('try again later', when)
    : `${said} T${when.slice(1)}.`;
}

/** What the server says of a request that failed. */
export async function saidOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  return body?.error?.message ?? `The server answered with status ${response.status}.`;
}

/** Seconds that the server asks to wait; 0 where it does not say. */
export function retryAfterSeconds({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after'));
  return Number.isFinite(seconds) ? seconds : 0;
}
