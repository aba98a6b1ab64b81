import { markedText } from '../../../../../texts/file-text.js';
import { type Attachment, isPicture } from './attachment.js';

/** Content of a message, as the API takes it. */
export type MessageContent = string | ContentPart[];

export type ContentPart = { type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } };

/**
 * A question with its attachments as the content of a message: pictures as parts in front, texts of files marked as such before
 * the question. Of what is not kept any more nothing is sent.
 * @param sees whether the model takes pictures; else they are left out.
 */
export function contentOf(
  question: string,
  attachments: readonly Attachment[],
  sees: boolean,
): MessageContent {
  const texts = attachments.flatMap((one) =>
    isPicture(one) || one.content === null ? [] : [markedText(one)],
  );
  const text = [...texts, ...(question === '' ? [] : [question])].join('\n\n');
  const pictures = attachments.flatMap((one): ContentPart[] => {
    if (!isPicture(one) || one.content === null || !sees) return [];
    return [{ type: 'image_url', image_url: { url: `data:${one.type};base64,${one.content}` } }];
  });
  if (pictures.length === 0) return text;
  return text === '' ? pictures : [...pictures, { type: 'text', text }];
}
