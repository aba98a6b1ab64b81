import { checkLengths, type TextRequest } from '../text-generation.js';
import type { TextModel } from '../text-model.js';
import type { DecodedPicture, Picture } from './picture.js';
import { type ImageGrids, pictureFields, spelled } from './spell-pictures.js';

/** The pictures of a prompt, which are not decoded yet. */
export interface UnseenPictures {
  pictures: readonly Picture[];
  imageGrids: ImageGrids;
  /** Ends the wait for what they are made into. */
  signal: AbortSignal | undefined;
}

/** A request whose prompt may have pictures that are to be decoded. */
export type AskedRequest = Omit<TextRequest, 'unseen'> & { unseen?: UnseenPictures | null | undefined };

/** Number of tokens that are of pictures. */
export function imageTokensOf({ unseen }: Pick<AskedRequest, 'unseen'>): number {
  return (unseen?.imageGrids ?? []).reduce((sum, [, rows = 0, columns = 0]) => sum + rows * columns, 0);
}

/**
 * The request as the engine takes it: its pictures are decoded now, one after the other, and seen. One that the model's context or queue
 * would refuse is refused before.
 * @param terms of the caller: pictures of another salt share no rows with it
 * @throws ContextLengthError, QueueFullError; InvalidRequestError for a damaged file; as Picture and DecodedPicture
 */
export async function seenRequest(
  model: TextModel,
  { unseen, ...request }: AskedRequest,
  {
    queueKey = request.queueKey ?? '',
    cacheSalt = request.cacheSalt,
  }: Pick<TextRequest, 'queueKey' | 'cacheSalt'> = {},
): Promise<TextRequest> {
  if (!unseen) return request;
  checkLengths(model, request);
  model.engine.checkRoom?.(queueKey);
  const { pictures, imageGrids, signal } = unseen;
  const decoded: DecodedPicture[] = [];
  for (const picture of pictures) {
    signal?.throwIfAborted();
    decoded.push(await picture.decode(signal, cacheSalt));
  }
  return {
    ...request,
    promptTokens: spelled(request.promptTokens, imageGrids, decoded),
    imageGrids: imageGrids.map((grid) => [...grid]),
    ...(await pictureFields(decoded)),
  };
}
