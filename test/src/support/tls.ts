import { fileURLToPath } from 'node:url';

/** Paths of a certificate that signs itself, for localhost and 127.0.0.1 until 2125, and of its key. */
export function certificateFixture(name: 'localhost' | 'other'): { cert: string; key: string } {
  const path = (file: string) => fileURLToPath(new URL(`../../fixtures/tls/${file}`, import.meta.url));
  return { cert: path(`${name}.cert.pem`), key: path(`${name}.key.pem`) };
}
