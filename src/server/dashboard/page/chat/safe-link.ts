const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/**
 * Target of a link in an answer, by a scheme that runs nothing; null for any other. A text that is no full address,
 * such as a path of this server, has no target: a model does not know this server.
 */
export function safeLink(href: string): string | null {
  const url = URL.canParse(href) ? new URL(href) : null;
  return url !== null && SCHEMES.has(url.protocol) ? url.href : null;
}
