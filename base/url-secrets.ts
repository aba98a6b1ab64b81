/**
 * True where an address has a user or a password in it, or looks so where it is no address. Such a text may stand in no log, and in no
 * error that a client gets.
 */
export function holdsSecret(address: string): boolean {
  if (!URL.canParse(address)) return address.includes('@');
  const { username, password, protocol, host } = new URL(address);
  // `user:password@host` is an address of the protocol `user:`.
  return username !== '' || password !== '' || (host === '' && address.slice(protocol.length).includes('@'));
}
