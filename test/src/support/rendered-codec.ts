import { ChatTemplate } from '../../../models/chat-template.js';
import type { TextSegment, Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import type { PromptTokens, TextCodec } from '../../../src/generation/text-model.js';
import { BOS_TOKEN, bytesOf, templatedCodec } from './toy-codec.js';

/** One token per byte, `<bos>` and `<eos>` as they are written. */
const BYTES = {
  bosToken: '<bos>',
  eosToken: '<eos>',
  controlTokenTexts: [],
  encodeSegments: (segments: readonly TextSegment[]) => bytesOf(segments.map(({ text }) => text).join('')),
};

/** The toy's tokenizer with a chat template that is rendered. @param tokenizer of prompts alone */
export function renderedCodec(
  source: string,
  now: () => Date = () => new Date(),
  tokenizer:
    | Pick<Tokenizer, 'bosToken' | 'eosToken' | 'controlTokenTexts' | 'encodeSegments'>
    | typeof BYTES = BYTES,
): TextCodec & { renders: () => number } {
  const template = new ChatTemplate(source, tokenizer, { now });
  let count = 0;
  return {
    ...templatedCodec(source),
    renders: () => count,
    encodeChat: (messages, options) => {
      count++;
      const { begunReasoning, addGenerationPrompt = true, continueFinalMessage = false } = options;
      const { segments } = template.render(messages, {
        addGenerationPrompt,
        continueFinalMessage,
        ...(begunReasoning !== undefined && { begunReasoning }),
        ...(options.tools && { tools: options.tools }),
        templateKwargs: options.variables ?? {},
      });
      const tokens = tokenizer.encodeSegments(segments);
      return options.addSpecialTokens ? [BOS_TOKEN, ...tokens] : tokens;
    },
  };
}

/** The text of a prompt of this tokenizer. */
export function promptText(tokens: PromptTokens): string {
  return new TextDecoder().decode(Uint8Array.from(tokens));
}
