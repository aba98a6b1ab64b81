import * as z from 'zod';
import { isObject } from '../../../../base/option-values.js';
import type { PictureInput } from '../../../encoding/picture-encoder.js';

const OBJECT = {
  type: 'object',
  properties: { text: { type: 'string', description: 'The text.' } },
  required: ['text'],
};
const PICTURE = {
  type: 'object',
  properties: {
    image: {
      type: 'string',
      description: 'A picture (JPEG, PNG, WebP or GIF): a data: URL with base64, or the base64 alone.',
    },
  },
  required: ['image'],
};

/**
 * What a validator reports of a fault: its sentence, its place, and whether it is something that this server
 * lacks.
 */
type Refuse = (message: string, path: PropertyKey[], isLacking?: boolean) => never;

/**
 * Texts and pictures as Jina's API has them: an object with a text or an image, or a list of strings and such objects. Objects of anything else
 * are refused by the name of their field. They are looked at in one go, see tokenList.
 */
export function textsOrPictures() {
  const schema = z.unknown().transform((value, context): (PictureInput | string)[] => {
    const refuse: Refuse = (message, path, isLacking = false) => {
      context.addIssue({ code: 'custom', message, path, params: { refused: isLacking }, continue: false });
      return z.NEVER;
    };
    const read = (item: unknown, path: PropertyKey[]) =>
      isObject(item) && 'image' in item ? pictureOf(item, path, refuse) : textOf(item, path, refuse);
    // Lists of token ids have faults of their own.
    if (!Array.isArray(value)) return isObject(value) ? [read(value, [])] : refuse(EXPECTED, []);
    if (value.length === 0 || Array.isArray(value[0]) || typeof value[0] === 'number')
      return refuse(EXPECTED, []);
    return value.map((item, i) => (typeof item === 'string' ? item : read(item, [i])));
  });
  const objects = [OBJECT, PICTURE];
  const list = { type: 'array', items: { anyOf: [{ type: 'string' }, ...objects] }, minItems: 1 };
  z.globalRegistry.add(schema, { anyOf: [...objects, list] } as z.GlobalMeta);
  return schema;
}

function pictureOf(value: Record<string, unknown>, path: PropertyKey[], refuse: Refuse): PictureInput {
  const other = Object.keys(value).find((key) => key !== 'image');
  if (other !== undefined) return refuse('a picture together with anything else', [...path, other], true);
  const { image } = value;
  if (typeof image !== 'string')
    return refuse('expected a data: URL with base64, or base64', [...path, 'image']);
  const [at] = path;
  const place = at === undefined ? 'input.image' : `input[${String(at)}].image`;
  return { picture: image, place };
}

const EXPECTED = 'expected a string or an object with a text';

function textOf(value: unknown, path: PropertyKey[], refuse: Refuse): string {
  if (!isObject(value)) return refuse(EXPECTED, path);
  const other = Object.keys(value).find((key) => key !== 'text');
  if (other !== undefined) return refuse('embeddings of anything but texts', [...path, other], true);
  const { text } = value;
  return typeof text === 'string' ? text : refuse(EXPECTED, 'text' in value ? [...path, 'text'] : path);
}
