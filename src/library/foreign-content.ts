import type { ChatTextPart } from '../../models/chat-message.js';
import { InvalidRequestError } from '../errors/request-errors.js';

/** A file of a message of another library: its bytes, its base64, or its address. */
export interface ForeignFile {
  mediaType: string;
  data: Uint8Array | string | URL;
}

/** A picture or a text as a part of a message. @throws InvalidRequestError for a file that no model here reads */
export function filePart({ mediaType, data }: ForeignFile): ChatTextPart {
  if (mediaType.startsWith('image/')) {
    if (data instanceof URL) return { type: 'image_url', image_url: { url: data.href } };
    return { type: 'image', image: bytesOf(data) };
  }
  if (mediaType.startsWith('text/') && !(data instanceof URL))
    return { type: 'text', text: new TextDecoder().decode(bytesOf(data)) };
  throw new InvalidRequestError(
    `A file of the type ${mediaType} is not read; pictures and texts are.`,
    'messages',
  );
}

const bytesOf = (data: Uint8Array | string) =>
  typeof data === 'string' ? Buffer.from(data, 'base64') : data;

/** Content of one text as that text: templates take it where they take no parts. */
export function contentOf(parts: readonly ChatTextPart[]): string | readonly ChatTextPart[] {
  const [only] = parts;
  return parts.length === 1 && only?.type === 'text' ? (only.text ?? '') : parts;
}

/** Options without those that are undefined, so that they can stand before others. */
export function given<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}
