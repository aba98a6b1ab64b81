import { PICTURE_LIMITS } from '../../../../models/images/picture-limits.js';
import { InvalidRequestError } from '../../../errors/request-errors.js';
import { isUnread, partsOf } from '../../../generation/pictures/picture-part.js';
import type { SeenMessages } from '../../../generation/pictures/see-messages.js';
import { seenMessages } from '../../answering/seen-chat.js';

type Seeing = Parameters<typeof seenMessages>;

/**
 * Looks at the pictures of a response's conversation, earlier turns included.
 * @throws as seenMessages; InvalidRequestError for more pictures than a request may have, which says what to do
 */
export function seenConversation(
  context: Seeing[0],
  model: Seeing[1],
  messages: Seeing[2],
  exchange: Seeing[3],
): Promise<SeenMessages> {
  const { maxPictures } = PICTURE_LIMITS;
  const count = messages.flatMap(partsOf).filter(isUnread).length;
  if (count > maxPictures && model.sight)
    throw new InvalidRequestError(
      `The conversation has ${count} pictures, those of earlier turns included, and may have ${maxPictures}: delete items that have some, or go on from an earlier response.`,
      'input',
      'invalid_image',
    );
  return seenMessages(context, model, messages, exchange, 'input');
}
