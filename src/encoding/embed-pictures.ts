import { type FilesOptions, filesOf } from '../generation/pictures/picture-files.js';
import { type PicturePart, pictureAt, sourceOfUrl } from '../generation/pictures/picture-part.js';
import { blindness } from '../generation/pictures/see-messages.js';
import type { EncoderInput } from './encoder-codec.js';
import type { EncoderModel } from './encoder-model.js';
import type { EncodedPicture, PictureInput } from './picture-encoder.js';

/** A text, token ids, or a picture. */
export type EmbeddingInput = EncoderInput | PictureInput;

/** How the files of pictures are loaded. Default: none that a request only names are. */
export interface PictureLoading extends Partial<Pick<FilesOptions, 'sources' | 'hold'>> {
  /** Pictures of other salts share no rows with these. Default: that of all who have none. */
  salt?: bigint | undefined;
}

export const isPicture = (input: EmbeddingInput): input is PictureInput =>
  typeof input === 'object' && 'picture' in input;

/**
 * Loads the files of the pictures among the inputs and reads their headers. Nothing is decoded.
 * @param loading `hold` is called with the bytes that each takes until it has its row; may throw
 * @throws InvalidRequestError where the model takes none, for files that are none, or are too many or too large; what `hold` and the sources
 * throw
 */
export async function lookAtInputs(
  { pictures: encoder, whyBlind }: Pick<EncoderModel, 'pictures' | 'whyBlind'>,
  inputs: readonly PictureInput[],
  { signal, sources = {}, hold }: PictureLoading & { signal: AbortSignal | undefined },
): Promise<EncodedPicture[]> {
  const [first] = inputs;
  if (first === undefined) return [];
  if (!encoder) throw blindness(whyBlind === undefined ? {} : { whyBlind }, first.place);
  const files = await filesOf(inputs.map(partOf), { sources, signal, hold, param: 'input' });
  return inputs.map(({ place }, i) => {
    const picture = encoder.look(files[i]!, place);
    hold?.(picture.bytes);
    return picture;
  });
}

/** Embeddings of pictures, which are decoded one after the other. @param onRow called with each that is there */
export async function rowsOfInputs(
  pictures: readonly EncodedPicture[],
  { signal, salt }: Pick<PictureLoading, 'salt'> & { signal: AbortSignal | undefined },
  onRow: () => void,
): Promise<Float32Array[]> {
  const rows: Promise<Float32Array>[] = [];
  for (const picture of pictures) {
    signal?.throwIfAborted();
    const row = (await picture.decode(signal)).row(salt);
    row.then(onRow, () => {});
    rows.push(row);
  }
  return Promise.all(rows);
}

/** Beginning of an address, which no base64 has. */
const SCHEME = /^[a-z][a-z0-9+.-]{0,32}:/i;

function partOf({ picture, place }: PictureInput): PicturePart {
  if (typeof picture !== 'string') return pictureAt({ file: picture }, place);
  return pictureAt(SCHEME.test(picture) ? sourceOfUrl(picture, place) : { base64: picture }, place);
}
