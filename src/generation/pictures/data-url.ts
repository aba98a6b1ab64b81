import { InvalidRequestError } from '../../errors/request-errors.js';

/** Characters in which a data URL's comma is looked for: those before it name a type. */
const MAX_HEAD = 256;

/**
 * The base64 of a data URL. The type that it names is not read: what a file is tell its first bytes.
 * @param place where it stands in the request @throws InvalidRequestError for any other address
 */
export function base64OfUrl(url: string, place: string): string {
  const head = url.slice(0, MAX_HEAD);
  const comma = head.indexOf(',');
  if (comma >= 0 && /^data:[^,]*;\s*base64\s*$/i.test(head.slice(0, comma))) return url.slice(comma + 1);
  const why = /^https?:/i.test(head)
    ? 'is the address of a picture, and this server fetches none: send its bytes in a data: URL.'
    : 'is no data: URL with base64, such as data:image/png;base64,iVBORw0...';
  throw new InvalidRequestError(`'${place}' ${why}`, place, 'invalid_image');
}
