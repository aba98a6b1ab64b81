import { ChatTemplate } from '../../../models/chat-template.js';
import type { TextSegment } from '../../../models/tokenizer/tokenizer.js';
import type { PromptTokens, TextCodec } from '../../../src/generation/text-model.js';
import { BOS_TOKEN, bytesOf, templatedCodec } from './toy-codec.js';

/** The toy's tokenizer with a chat template that is rendered: one token per byte, `<bos>` and `<eos>` as they are written. */
export function renderedCodec(
  source: string,
  now: () => Date = () => new Date(),
): TextCodec & { renders: () => number } {
  const tokens = { bosToken: '<bos>', eosToken: '<eos>', controlTokenTexts: [] };
  const template = new ChatTemplate(source, tokens, { now });
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
      const tokens = bytesOf(segments.map((segment: TextSegment) => segment.text).join(''));
      return options.addSpecialTokens ? [BOS_TOKEN, ...tokens] : tokens;
    },
  };
}

/** The text of a prompt of this tokenizer. */
export function promptText(tokens: PromptTokens): string {
  return new TextDecoder().decode(Uint8Array.from(tokens));
}
