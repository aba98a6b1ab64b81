import { type NamedText, says } from '../../base/named-text.js';
import { EndpointError } from './endpoint.js';

/** A key pair of CURVE, in Z85. */
export interface CurveKeys {
  publicKey: string;
  secretKey: string;
}

/** Characters of Z85 (RFC 32 of ZeroMQ). */
const Z85 = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#';

/**
 * Reads a certificate as CZMQ and pyzmq (`zmq.auth.create_certificates`) write them: lines `public-key = "..."` and, where it is
 * one's own, `secret-key = "..."`. @param what names the file in errors. @throws EndpointError
 */
export function readCertificate(
  what: NamedText,
  text: string,
): { publicKey: string; secretKey: string | null } {
  const publicKey = keyOf(text, 'public');
  if (publicKey === null) {
    throw new EndpointError(
      says`${what} has no line public-key = "..." with a key of 40 characters, as zmq.auth.create_certificates of pyzmq writes it.`,
    );
  }
  return { publicKey, secretKey: keyOf(text, 'secret') };
}

function keyOf(text: string, kind: 'public' | 'secret'): string | null {
  const [, key = null] = new RegExp(`^\\s*${kind}-key\\s*=\\s*"(.{40})"\\s*$`, 'm').exec(text) ?? [];
  return key === null || [...key].some((sign) => !Z85.includes(sign)) ? null : key;
}

/** The text of a key that comes as 32 bytes. */
export function z85(bytes: Uint8Array): string {
  let text = '';
  for (let start = 0; start + 4 <= bytes.length; start += 4) {
    let word = bytes.subarray(start, start + 4).reduce((sum, byte) => sum * 256 + byte, 0);
    let group = '';
    for (let digit = 0; digit < 5; digit += 1) {
      group = Z85[word % 85]! + group;
      word = Math.floor(word / 85);
    }
    text += group;
  }
  return text;
}
