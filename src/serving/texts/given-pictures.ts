import { elementsOf } from '../../../callbacks/infer/byte-elements.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { Picture } from '../../generation/pictures/picture.js';
import { type PictureSource, pictureAt, sourceOfUrl } from '../../generation/pictures/picture-part.js';
import { lookAtPictures, type SeeOptions } from '../../generation/pictures/see-messages.js';
import type { AskedRequest } from '../../generation/pictures/seen-request.js';
import { gridsIn } from '../../generation/pictures/spell-pictures.js';
import { checkTextLength, promptLimit } from '../../generation/text-length.js';
import type { TextModel } from '../../generation/text-model.js';

/** A prompt of a text and pictures. */
export type PicturedPrompt = Pick<AskedRequest, 'promptTokens' | 'unseen'>;

/**
 * The prompt of a text with the pictures of a BYTES tensor, each a file, its base64 or a data: URL. They stand where the text has the
 * model's placeholder, or, where it has none, before it.
 * @param name of the tensor @throws InferError where places and pictures are of different numbers; as lookAtPictures; what the codec refuses
 */
export async function picturedPrompt(
  model: TextModel,
  text: string,
  { name, data }: InferTensor,
  options: Pick<SeeOptions, 'signal' | 'hold'>,
): Promise<PicturedPrompt> {
  const parts = elementsOf(data).map((element, i) => {
    const place = `${name}[${i}]`;
    return pictureAt(sourceOf(element, place), place);
  });
  const pictures = await lookAtPictures(model, [{ role: 'user', content: parts }], {
    ...options,
    param: name,
  });
  const { placeholder, tokenId } = model.sight!;
  const whole = withTexts(text, placeholder, pictures, name);
  checkTextLength(whole.length, promptLimit(model), 'text_input');
  const promptTokens = await model.codec.encodeText(whole, options.signal);
  try {
    const imageGrids = gridsIn(promptTokens, tokenId, pictures);
    return { promptTokens, unseen: { pictures, imageGrids, signal: options.signal } };
  } catch {
    throw new InferError(
      `'text_input' has tokens that stand for pictures besides those of '${name}'`,
      'invalid',
    );
  }
}

/** Bytes of the beginning of a file by which it is distinguished from its base64. */
const BEGINNING = 16;

function sourceOf(element: Uint8Array, place: string): PictureSource {
  const beginning = Buffer.from(element.subarray(0, BEGINNING)).toString('latin1');
  const text = () => Buffer.from(element.buffer, element.byteOffset, element.byteLength).toString('latin1');
  if (beginning.startsWith('data:')) return sourceOfUrl(text(), place);
  // The first letters of files of GIF and WebP might be those of base64, of which no picture begins so.
  const isBase64 = /^[\w+/=\s]*$/.test(beginning) && !/^(GIF8|RIFF)/.test(beginning);
  // Memory that is shared with the client may change.
  return isBase64 ? { base64: text() } : { file: Uint8Array.from(element) };
}

/** @throws InferError where the text has another number of places */
function withTexts(text: string, placeholder: string, pictures: readonly Picture[], name: string): string {
  const between = text.split(placeholder);
  const texts = pictures.map((picture) => picture.text);
  if (between.length === 1) return [...texts, text].join('');
  if (between.length - 1 === texts.length)
    return between.map((piece, i) => piece + (texts[i] ?? '')).join('');
  throw new InferError(
    `'text_input' has ${between.length - 1} places of pictures (${placeholder}), and '${name}' has ${texts.length}; as many are expected, or no places`,
    'invalid',
  );
}
