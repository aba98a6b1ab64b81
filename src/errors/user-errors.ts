import { SkeinError } from '../../base/skein-error.js';

/** An error for a user's request that names something unknown or invalid. The message says what would work. */
export class UsageError extends SkeinError {
  override name = 'UsageError';
  override readonly code = 'SKEIN_USAGE';
}

/** An error for models of the hub that cannot be had; the sentence says what to do where something can be done. */
export class HubError extends SkeinError {
  override name = 'HubError';
  override readonly code = 'SKEIN_HUB';

  /** @param fault `refused`: the hub answers, and has no such model or shows none; `unreachable`: it does not answer; `other`: anything else */
  constructor(
    message: string,
    readonly fault: 'refused' | 'unreachable' | 'other' = 'other',
  ) {
    super(message);
  }
}

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
