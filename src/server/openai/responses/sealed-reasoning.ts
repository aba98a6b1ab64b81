const PREFIX = 'skein1:';

/**
 * Reasoning as `encrypted_content`, which clients that keep no responses send back. It is the client's own
 * conversation, so it is only encoded.
 */
export function sealed(reasoning: string): string {
  return PREFIX + Buffer.from(reasoning).toString('base64');
}

/** The reasoning of such content; '' for that of another server. */
export function unsealed(content: string): string {
  return content.startsWith(PREFIX) ? Buffer.from(content.slice(PREFIX.length), 'base64').toString() : '';
}
