import { type AddressInfo, createServer } from 'node:net';
import { asSentence } from '../../../base/sentences.js';
import { SkeinError } from '../../../base/skein-error.js';

/** An error for an address that cannot be listened on. */
class ListenError extends SkeinError {
  override name = 'ListenError';
  override readonly code = 'SKEIN_LISTEN';
}

/**
 * Address of a host on this machine. Fails before any costly work where it cannot be listened on. @throws ListenError
 */
export async function checkAddress(host: string, port: number, option?: string): Promise<string> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port, option)));
    probe.listen(port, host, resolve);
  });
  const { address } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return address;
}

/** States why a server cannot listen, with host and port. @param option that chooses the port */
export function listenError(
  error: NodeJS.ErrnoException,
  host: string,
  port: number,
  option = '--port',
): Error {
  if (error.code === 'EADDRINUSE') {
    return new ListenError(
      `Port ${port} on ${host} is in use; choose another with ${option} (0 takes a free one).`,
    );
  }
  if (error.code === 'EACCES') {
    return new ListenError(
      `Port ${port} on ${host} needs more rights than this process has; choose one above 1023.`,
    );
  }
  return new ListenError(`Cannot listen on ${host}:${port}: ${asSentence(error.message)}`);
}
