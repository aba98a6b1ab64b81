import * as z from 'zod';
import { about, component, ignored, optional } from './fields.js';
import { type OtherFields, withOtherFields } from './fields-node.js';
import { checkLists } from './long-lists.js';
import { lacking, named, without, withoutBearing } from './other-field.js';
import { unknownFieldsIn, validated } from './validated.js';

/** Fields of other servers' messages. */
const OTHER_MESSAGE_FIELDS: OtherFields = {
  ...withoutBearing('id status weight annotations cache_control'),
  images: lacking('images', []),
  videos: lacking('videos', []),
  audio: lacking('audio'),
  prefix: named('continue_final_message', false),
  partial: named('continue_final_message', false),
};

/** Fields of other servers' parts of messages. Parts of other types are refused by their types. */
const OTHER_PART_FIELDS: OtherFields = withoutBearing(
  'cache_control annotations id image_url input_audio file video_url audio_url',
);

const text = () => z.string();
const PART = { type: z.string(), text: optional(text()) };
const OWN_PART = { ...PART, refusal: optional(text(), 'What the model wrote, in a part of type refusal.') };

const imageUrl = z.union(
  [
    z.string(),
    z.object({
      url: about(
        z.string(),
        'A data: URL with base64, such as data:image/png;base64,iVBORw0..., or an https: address, where --allow-image-urls is given.',
      ),
      detail: ignored('Accepted; a picture has the size that the model gives it.'),
    }),
  ],
  { error: 'expected {"url": a data: URL with base64 or an address}, or that URL' },
);
const storedFile = z.object({
  file_id: optional(z.string(), 'The id of a picture that was stored with POST /v1/files.'),
  file_data: optional(z.string(), 'In its place: a data: URL with base64.'),
  filename: ignored('Accepted; a file itself names its kind.'),
});
const USER_PART = {
  ...PART,
  image_url: optional(imageUrl, 'A picture (JPEG, PNG, WebP or GIF), in a part of type image_url.'),
  file: optional(storedFile, 'A picture as a file, in a part of type file.'),
};

/** A part of content, as it is read. */
export type ReadPart =
  | { type: 'text'; text: string }
  | { type: 'image'; field: 'image_url' | 'file'; picture: { url: string } | { fileId: string } };

interface PictureFields {
  image_url?: z.output<typeof imageUrl> | undefined;
  file?: Partial<z.output<typeof storedFile>> | undefined;
}

/** The picture of a part; a sentence where it has none. */
function pictureOf(
  type: keyof PictureFields,
  { image_url: image, file = {} }: PictureFields,
): Extract<ReadPart, { type: 'image' }>['picture'] | string {
  if (type === 'image_url') {
    if (image === undefined) return 'expected the URL of a picture';
    return { url: typeof image === 'string' ? image : image.url };
  }
  const { file_id: fileId, file_data: url } = file;
  if ((fileId === undefined) === (url === undefined)) return 'expected one of file_id and file_data';
  return fileId === undefined ? { url: url! } : { fileId };
}

/**
 * A part of content; one that is neither a text nor, where the fields have it, a picture is refused by the name of its place.
 * @param ofType field of each type's text
 */
const part = <T extends typeof PART>(fields: T, ofType: Readonly<Record<string, 'text' | 'refusal'>>) =>
  withOtherFields(
    z.object(fields),
    'image_url' in fields ? without(OTHER_PART_FIELDS, 'image_url file') : OTHER_PART_FIELDS,
  ).transform((given, context): ReadPart => {
    const { type } = given as { type: string };
    const refuse = (issue: { message: string; path?: string[]; params?: object }) => {
      context.addIssue({ code: 'custom', ...issue, continue: false });
      return z.NEVER;
    };
    if ((type === 'image_url' || type === 'file') && 'image_url' in fields) {
      const picture = pictureOf(type, given as PictureFields);
      if (typeof picture === 'string') return refuse({ message: picture, path: [type] });
      return { type: 'image', field: type, picture };
    }
    const field = Object.hasOwn(ofType, type) ? ofType[type]! : null;
    if (field === null) return refuse({ message: unread(type), params: { refused: true } });
    const found = (given as Partial<Record<string, string>>)[field];
    if (found === undefined) return refuse({ message: 'expected a string', path: [field] });
    return { type: 'text', text: found };
  });

/** Parts of other APIs with a picture, and the API. */
const OTHER_PICTURES = new Map([
  ['input_image', '/v1/responses'],
  ['image', '/v1/messages'],
]);

function unread(type: string): string {
  if (type === 'image_url' || type === 'file') return `parts of type '${type}' outside of a user's message`;
  const api = OTHER_PICTURES.get(type);
  if (api !== undefined)
    return `parts of type '${type}', which are those of ${api}: a picture is {"type": "image_url", "image_url": {"url": ...}} here`;
  return `parts of type '${type}': the model reads text`;
}

const ONLY_TEXT =
  'expected a string or a list of {"type": "text"} parts (no other kind of part is supported)';

/** Content of a message: a text, or parts that are all text. */
const content = () => z.union([text(), z.array(part(PART, { text: 'text' }))], { error: ONLY_TEXT });

/** Content of a user's message, of which parts may be pictures. */
const userContent = () =>
  z.union([text(), z.array(part(USER_PART, { text: 'text' }))], {
    error:
      'expected a string or a list of parts {"type": "text"}, {"type": "image_url"} and {"type": "file"}',
  });

/** Content of an assistant's message, of which a part may be a refusal. */
const ownContent = () =>
  z.union([text(), z.array(part(OWN_PART, { text: 'text', refusal: 'refusal' }))], { error: ONLY_TEXT });

const fieldsOfMessage = <T extends z.ZodRawShape>(fields: T) =>
  withOtherFields(z.object(fields), OTHER_MESSAGE_FIELDS);

/** Arguments of a call: JSON as the model wrote it, or its parsed value. */
const args = () =>
  about(
    z
      .union([z.string(), z.record(z.string(), z.unknown())], {
        error: 'expected a string of JSON, or an object',
      })
      .nullish(),
    'JSON, as it came, or an object.',
  );

/** A call in the older form. */
const madeFunctionCall = z.object({ name: z.string(), arguments: args() });

/** A call in OpenAI's form, or in the flat one in which programs get it: both become OpenAI's. */
const madeCall = withOtherFields(
  z.object({
    id: optional(z.string()),
    type: z.literal('function').nullish(),
    function: about(z.object({ name: z.string(), arguments: args() }).optional(), 'The function.'),
    name: optional(z.string(), 'In place of function.name, as answers of Skein.complete have it.'),
    arguments: args(),
  }),
  withoutBearing('index'),
).transform(({ id, type, function: callee, name, arguments: given }, context) => {
  if (callee !== undefined) return { id, type, function: callee };
  if (name !== undefined)
    return { id, type: type ?? ('function' as const), function: { name, arguments: given } };
  const message = 'Invalid input: expected object, received undefined';
  context.addIssue({
    code: 'invalid_type',
    expected: 'object',
    input: undefined,
    message,
    path: ['function'],
  });
  return z.NEVER;
});

export const message = component(
  'ChatMessage',
  z.discriminatedUnion('role', [
    fieldsOfMessage({
      role: z.enum(['system', 'developer']),
      content: about(content(), 'Text, or parts of type text. Text that spells a special token stays text.'),
      name: optional(text(), 'Reaches the chat template.'),
    }),
    fieldsOfMessage({
      role: z.literal('user'),
      content: about(
        userContent(),
        'Text, or parts of type text, image_url and file. Text that spells a special token stays text.',
      ),
      name: optional(text(), 'Reaches the chat template.'),
    }),
    fieldsOfMessage({
      role: z.literal('assistant'),
      content: about(ownContent().nullish(), 'May be null where there are tool calls.'),
      refusal: optional(text(), 'Accepted; not part of the prompt.'),
      reasoning: optional(text(), 'What the model thought; reaches the chat template, as reasoning_content.'),
      reasoning_content: optional(text(), 'The same under the older name.'),
      name: optional(text(), 'Reaches the chat template.'),
      tool_calls: optional(z.array(madeCall), 'Calls that the model made; they reach the chat template.'),
      function_call: optional(madeFunctionCall, {
        description: 'The older form of one call.',
        deprecated: true,
      }),
    }),
    fieldsOfMessage({
      role: z.enum(['tool', 'function']),
      content: about(content(), 'What the tool answered.'),
      tool_call_id: optional(text(), 'Which call it answers.'),
      name: optional(text(), 'Reaches the chat template.'),
    }),
  ]),
  'A message of the conversation.',
);

export type ChatRequestMessage = z.output<typeof message>;

const conversation = z.object({ messages: z.array(message).min(1) });

/**
 * Reads the messages of a program, as those of a request over HTTP are read.
 * @throws InvalidRequestError for an unknown field, and for a value that a field does not take.
 */
export function readMessages(messages: readonly unknown[]): ChatRequestMessage[] {
  const body = { messages };
  checkLists(body);
  unknownFieldsIn(conversation, body, 'refuse');
  return validated(conversation, body).messages;
}
