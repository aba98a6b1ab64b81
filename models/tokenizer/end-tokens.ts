import { isControlToken } from './control-tokens.js';

/**
 * Texts of the tokens with which models end a turn, as llama.cpp lists them (its "end of generation" tokens), without those of fill-in-the-middle.
 * Published files often name only one of a model's ends: Llama 3's `<|eom_id|>` and ChatML's `<|im_end|>` are the usual ones to be missing.
 */
const END_TEXTS: ReadonlySet<string> = new Set([
  '<|im_end|>',
  '<|endoftext|>',
  '<|eot_id|>',
  '<|eom_id|>',
  '<|end_of_text|>',
  '<|end|>',
  '<|return|>',
  '<|call|>',
  '<|calls|>',
  '<|flush|>',
  '<end_of_turn>',
  '<turn|>',
  '<|tool_response>',
  '<end_of_utterance>',
  '<eos>',
  '</s>',
  '<｜end▁of▁sentence｜>',
  '<|END_OF_TURN_TOKEN|>',
  '[|endofturn|]',
  '<EOT>',
  '_<EOT>',
  '[EOT]',
  '[EOS]',
]);

/** Ends a message and not the turn, if the vocabulary has both tokens of one of these pairs as ends. */
const END_OF_MESSAGE = '<|end|>';
const TURN_ENDS = [
  ['<|return|>', '<|call|>'],
  ['<|flush|>', '<|calls|>'],
] as const;

/**
 * Ids of the control tokens that end a turn by their texts. A model without a chat template has them too, as in llama.cpp: it draws none that it
 * was not trained on. In the harmony format `<|end|>` ends a message, after which the turn goes on.
 */
export function endOfTurnTokens(
  added: Iterable<{ id: number; content: string; special: boolean }>,
): number[] {
  const ends = new Map<string, number>();
  for (const token of added) {
    if (END_TEXTS.has(token.content) && isControlToken(token)) ends.set(token.content, token.id);
  }
  if (TURN_ENDS.some((pair) => pair.every((text) => ends.has(text)))) ends.delete(END_OF_MESSAGE);
  return [...ends.values()];
}
