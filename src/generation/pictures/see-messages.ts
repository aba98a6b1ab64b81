import type { ChatMessage, ChatTextPart } from '../../../models/chat-message.js';
import { PictureError } from '../../../models/images/picture-error.js';
import { checkFiles, PICTURE_LIMITS } from '../../../models/images/picture-limits.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { TextModel } from '../text-model.js';
import type { Picture, Sight } from './picture.js';

/** A part of a message with a picture that has not been read yet. */
export interface PicturePart extends ChatTextPart {
  type: 'image';
  /** Its file. */
  base64: string;
  /** Where it stands in the request. */
  place: string;
}

/** A conversation whose pictures have been read. */
export interface SeenMessages {
  /** The messages, with parts that say no more than that a picture is there. */
  messages: readonly ChatMessage[];
  /** The pictures of some of these messages, in their order. */
  picturesOf(some: readonly ChatMessage[]): Picture[];
}

export interface SeeOptions {
  /** Ends the wait. */
  signal?: AbortSignal | undefined;
  /** Called with the bytes that each picture takes until it has its rows; may throw. */
  hold?: ((bytes: number) => void) | undefined;
}

const isUnread = (part: ChatTextPart): part is PicturePart => part.type === 'image' && 'base64' in part;

/**
 * Reads the pictures of a conversation, one after the other. Their number and bytes are looked at before the first is read.
 * @throws InvalidRequestError where the model takes none, for files that are none, or are too many or too large; PicturesBusyError,
 * PictureDecoderError; the signal's reason; what `hold` throws
 */
export async function seeMessages(
  model: Pick<TextModel, 'sight' | 'whyBlind'>,
  messages: readonly ChatMessage[],
  options: SeeOptions = {},
): Promise<SeenMessages> {
  const unread = messages.flatMap(unreadOf);
  const [first] = unread;
  if (first === undefined) return { messages, picturesOf: () => [] };
  const { sight } = model;
  if (!sight) throw blindness(model, first.place);
  checkAll(unread);
  const pictures = new Map<ChatMessage, Picture[]>();
  const seen: ChatMessage[] = [];
  for (const message of messages) {
    const parts = unreadOf(message);
    if (parts.length === 0) seen.push(message);
    else {
      const bare = { ...message, content: partsOf(message).map(bared) };
      pictures.set(bare, await readAll(sight, parts, options));
      seen.push(bare);
    }
  }
  return { messages: seen, picturesOf: (some) => some.flatMap((message) => pictures.get(message) ?? []) };
}

/** The error of a picture that the model does not take. @param place where it stands in the request */
export function blindness({ whyBlind }: Pick<TextModel, 'whyBlind'>, place: string): InvalidRequestError {
  const why = whyBlind ?? 'the model reads text alone.';
  return new InvalidRequestError(`'${place}' has a picture, which is not taken: ${why}`, place, 'no_vision');
}

async function readAll(
  sight: Sight,
  parts: readonly PicturePart[],
  { signal, hold }: SeeOptions,
): Promise<Picture[]> {
  const pictures: Picture[] = [];
  for (const { base64, place } of parts) {
    signal?.throwIfAborted();
    const picture = await sight.read(fileOf(base64, place), place, signal);
    hold?.(picture.bytes);
    pictures.push(picture);
  }
  return pictures;
}

const partsOf = ({ content }: ChatMessage): readonly ChatTextPart[] =>
  typeof content === 'object' && content !== null ? content : [];
const unreadOf = (message: ChatMessage): PicturePart[] => partsOf(message).filter(isUnread);
const bared = (part: ChatTextPart): ChatTextPart => (isUnread(part) ? { type: part.type } : part);

/** @throws InvalidRequestError where there are too many pictures, or their files are too large */
function checkAll(parts: readonly PicturePart[]): void {
  const files = parts.map(({ base64 }) => ({ byteLength: fileLength(base64) }));
  try {
    checkFiles(files, PICTURE_LIMITS);
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    throw new InvalidRequestError(error.message, 'messages', 'invalid_image');
  }
}

/** Bytes that a text in base64 stands for, where it has nothing else in it. */
function fileLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/** @throws InvalidRequestError for a text that is no base64; lines of it are taken */
function fileOf(base64: string, place: string): Uint8Array {
  const text = /\s/.test(base64) ? base64.replaceAll(/\s+/g, '') : base64;
  // Characters that are none of base64 are left out, so that the bytes are fewer.
  const file = Buffer.from(text, 'base64');
  if (file.length > 0 && file.length === fileLength(text)) return file;
  const found = file.length === 0 ? 'is empty' : 'has other characters';
  throw new InvalidRequestError(
    `'${place}' should hold a picture's file in base64, and ${found}.`,
    place,
    'invalid_image',
  );
}
