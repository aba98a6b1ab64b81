import type { ChatMessage, ChatTextPart } from '../../../models/chat-message.js';
import { InvalidRequestError } from '../../errors/request-errors.js';

/** Where the file of a picture is: in the request, in base64 or as it is; at an address; or among the files that its caller has stored. */
export type PictureSource = { base64: string } | { file: Uint8Array } | { url: string } | { fileId: string };

/** A part of a message with a picture that has not been read yet. */
export interface PicturePart extends ChatTextPart {
  type: 'image';
  source: PictureSource;
  /** Its place in the request. */
  place: string;
  /** True where the request did not bring it: it is of an earlier turn that is stored here. */
  isEarlier?: boolean;
}

export const pictureAt = (source: PictureSource, place: string, isEarlier = false): PicturePart => ({
  ...{ type: 'image', source, place },
  ...(isEarlier && { isEarlier }),
});

/** True for a part whose picture has not been read. */
export const isUnread = (part: ChatTextPart): part is PicturePart =>
  part.type === 'image' && 'source' in part;

/** The parts of a message; []: its content is a text. */
export const partsOf = ({ content }: ChatMessage): readonly ChatTextPart[] =>
  typeof content === 'object' && content !== null ? content : [];

/** Characters that are searched for a data URL's comma: those before it name a type. */
const MAX_HEAD = 256;

/**
 * What a URL of a picture says: base64, of a data URL, whose type is not read, since a file's first bytes tell what it is; or an address.
 * @param place its place in the request @throws InvalidRequestError for any other URL
 */
export function sourceOfUrl(url: string, place: string): PictureSource {
  const head = url.slice(0, MAX_HEAD);
  const comma = head.indexOf(',');
  if (comma >= 0 && /^data:[^,]*;\s*base64\s*$/i.test(head.slice(0, comma)))
    return { base64: url.slice(comma + 1) };
  if (/^https?:/i.test(head)) return { url };
  const why = 'is no data: URL with base64, such as data:image/png;base64,iVBORw0...';
  throw new InvalidRequestError(`'${place}' ${why}`, place, 'invalid_image');
}
