/**
 * True for a URL's host name on this machine: `localhost` and all below it, which browsers never look up, `127.0.0.1`,
 * `[::1]`.
 */
export function isLoopbackName(hostname: string): boolean {
  return (
    /^([\w-]+\.)*localhost$/.test(hostname) || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

/** True for a loopback address of a socket, as the system writes it. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(address);
}
