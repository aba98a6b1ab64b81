const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/**
 * Where a link of an answer may lead: to another place, by a scheme that runs nothing. What is no address by itself, as a
 * path of this server would be, leads nowhere: a model does not know this server.
 */
export function safeLink(href: string): string | null {
  const url = URL.canParse(href) ? new URL(href) : null;
  return url !== null && SCHEMES.has(url.protocol) ? url.href : null;
}
