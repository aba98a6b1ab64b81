import type { ChatMessage, ChatTextPart } from '../../../models/chat-message.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { TextModel } from '../text-model.js';
import type { Picture } from './picture.js';
import { type FilesOptions, filesOf } from './picture-files.js';
import { isUnread, partsOf } from './picture-part.js';

/** A conversation the headers of whose pictures have been read. */
export interface SeenMessages {
  /** The messages, with parts that say no more than that a picture is there. */
  messages: readonly ChatMessage[];
  /** The pictures of some of these messages, in their order. */
  picturesOf(some: readonly ChatMessage[]): Picture[];
}

/** Default: no sources, so that what a request only names is refused, and a field messages. */
export type SeeOptions = { [Name in keyof FilesOptions]?: FilesOptions[Name] | undefined };

/**
 * Loads the files of a conversation's pictures and reads their headers. Nothing is decoded: a request may be refused by what it asks for.
 * @param options `hold` is called with the bytes that each picture takes until it has its rows
 * @throws InvalidRequestError where the model takes none, for files that are none, or are too many or too large; the signal's reason; what
 * `hold` and the sources throw
 */
export async function seeMessages(...asked: Parameters<typeof lookAtPictures>): Promise<SeenMessages> {
  const [, messages] = asked;
  return seenWith(messages, await lookAtPictures(...asked));
}

/** The pictures of a conversation, in their order: see seeMessages. */
export async function lookAtPictures(
  model: Pick<TextModel, 'sight' | 'whyBlind'>,
  messages: readonly ChatMessage[],
  { sources = {}, param = 'messages', signal, hold }: SeeOptions = {},
): Promise<Picture[]> {
  const unread = messages.flatMap(unreadOf);
  const [first] = unread;
  if (first === undefined) return [];
  const { sight } = model;
  if (!sight) throw blindness(model, first.place);
  const files = await filesOf(unread, { sources, signal, hold, param });
  return unread.map(({ place }, i) => {
    const picture = sight.look(files[i]!, place);
    hold?.(picture.bytes);
    return picture;
  });
}

/** A conversation with its pictures. @param pictures those of its parts, in their order; further ones are left out */
export function seenWith(messages: readonly ChatMessage[], pictures: readonly Picture[]): SeenMessages {
  if (pictures.length === 0) return { messages, picturesOf: () => [] };
  const byMessage = new Map<ChatMessage, readonly Picture[]>();
  let next = 0;
  const seen = messages.map((message) => {
    const count = unreadOf(message).length;
    if (count === 0) return message;
    const bare = { ...message, content: partsOf(message).map(bared) };
    byMessage.set(bare, pictures.slice(next, next + count));
    next += count;
    return bare;
  });
  return { messages: seen, picturesOf: (some) => some.flatMap((message) => byMessage.get(message) ?? []) };
}

/** The error of a picture that the model does not take. @param place its place in the request */
export function blindness({ whyBlind }: Pick<TextModel, 'whyBlind'>, place: string): InvalidRequestError {
  const why = whyBlind ?? 'the model reads text alone.';
  return new InvalidRequestError(`'${place}' has a picture, which is not taken: ${why}`, place, 'no_vision');
}

const unreadOf = (message: ChatMessage) => partsOf(message).filter(isUnread);
const bared = (part: ChatTextPart): ChatTextPart => (isUnread(part) ? { type: part.type } : part);
