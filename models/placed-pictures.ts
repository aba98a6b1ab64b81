import { ChatTemplateError } from './chat-message.js';
import type { TextSegment } from './tokenizer/tokenizer.js';

/** What stands for the pictures of a conversation. */
export interface TemplatePictures {
  /** Text of the special token that the template writes for a picture. */
  placeholder: string;
  /** Texts that take its place, by picture in the order of the messages; special tokens in them are tokens. */
  texts: readonly string[];
}

/**
 * Puts the texts of pictures where the template has written their places:
 *
 *   "<|user|><image>What is it?<|end|>"   ->   "<|user|><begin><image><image><end>What is it?<|end|>"
 *
 * A user's own "<image>" is a segment without special tokens, and no place. @throws ChatTemplateError where there are more places, or fewer
 */
export function placePictures(
  segments: readonly TextSegment[],
  { placeholder, texts }: TemplatePictures,
): TextSegment[] {
  let places = 0;
  const placed = segments.map((segment) => {
    if (!segment.special) return segment;
    const [first, ...rest] = segment.text.split(placeholder);
    return { ...segment, text: rest.reduce((text, part) => text + (texts[places++] ?? '') + part, first!) };
  });
  if (places === texts.length) return placed;
  const written = places === 0 ? 'no place for pictures' : `${places} places for pictures`;
  throw new ChatTemplateError(
    `The chat template writes ${written}; the messages have ${texts.length}${texts.length === 1 ? ' picture' : ' pictures'}.`,
    { refusal: 'rule' },
  );
}
