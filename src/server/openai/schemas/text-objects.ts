import * as z from 'zod';

const OBJECT = {
  type: 'object',
  properties: { text: { type: 'string', description: 'The text.' } },
  required: ['text'],
};

/** What a validator tells of a fault: its sentence, its place, and whether it is something that this server lacks. */
type Refuse = (message: string, path: PropertyKey[], isLacking?: boolean) => never;

/**
 * Texts as Jina's API has them: an object with a text, or a list of strings and such objects, as a list of strings. Objects of images, or
 * of anything else, are refused by the name of their field. They are looked at in one go, see tokenList.
 */
export function textsOrObjects() {
  const schema = z.unknown().transform((value, context): string[] => {
    const refuse: Refuse = (message, path, isLacking = false) => {
      context.addIssue({ code: 'custom', message, path, params: { refused: isLacking }, continue: false });
      return z.NEVER;
    };
    // Lists of token ids have faults of their own.
    if (!Array.isArray(value)) return isObject(value) ? [textOf(value, [], refuse)] : refuse(EXPECTED, []);
    if (value.length === 0 || Array.isArray(value[0]) || typeof value[0] === 'number')
      return refuse(EXPECTED, []);
    return value.map((item, i) => (typeof item === 'string' ? item : textOf(item, [i], refuse)));
  });
  const items = { anyOf: [{ type: 'string' }, OBJECT] };
  const list = { type: 'array', items, minItems: 1 };
  z.globalRegistry.add(schema, { anyOf: [OBJECT, list] } as z.GlobalMeta);
  return schema;
}

const EXPECTED = 'expected a string or an object with a text';

function textOf(value: unknown, path: PropertyKey[], refuse: Refuse): string {
  if (!isObject(value)) return refuse(EXPECTED, path);
  const other = Object.keys(value).find((key) => key !== 'text');
  if (other !== undefined) return refuse('embeddings of anything but texts', [...path, other], true);
  const { text } = value;
  return typeof text === 'string' ? text : refuse(EXPECTED, 'text' in value ? [...path, 'text'] : path);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
