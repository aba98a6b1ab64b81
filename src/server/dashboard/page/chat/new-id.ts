/** An id that no other has. crypto.randomUUID needs HTTPS, which a server in a local network lacks. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
