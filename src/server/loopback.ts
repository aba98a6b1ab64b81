/** The name of a URL's host: `localhost` and all below it, which browsers look up nowhere else, `127.0.0.1`, `[::1]`. */
export function isLoopbackName(hostname: string): boolean {
  return (
    /^([\w-]+\.)*localhost$/.test(hostname) || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

/** An address that a socket listens on, as the system writes it. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(address);
}
