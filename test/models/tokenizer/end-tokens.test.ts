import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isControlToken } from '../../../models/tokenizer/control-tokens.js';
import { endOfTurnTokens } from '../../../models/tokenizer/end-tokens.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { byteLevelFiles } from './tiny-tokenizers.js';

const control = (...texts: string[]) =>
  texts.map((content, place) => ({ id: 100 + place, content, special: true }));

describe('the ends of a turn', () => {
  it.each([
    ['ChatML', ['<|endoftext|>', '<|im_start|>', '<|im_end|>'], [100, 102]],
    ['Llama 3', ['<|begin_of_text|>', '<|end_of_text|>', '<|eom_id|>', '<|eot_id|>'], [101, 102, 103]],
    ['Gemma', ['<pad>', '<eos>', '<bos>', '<start_of_turn>', '<end_of_turn>'], [101, 104]],
    ['Gemma 4', ['<eos>', '<|turn>', '<turn|>', '<|tool_response>', '<tool_response|>'], [100, 102, 103]],
    ['Phi', ['<|endoftext|>', '<|assistant|>', '<|end|>', '<|user|>'], [100, 102]],
    ['DeepSeek', ['<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>', '<｜User｜>'], [101]],
    ['harmony, where <|end|> ends a message alone', ['<|return|>', '<|end|>', '<|call|>'], [100, 102]],
    ['Solar, where it does too', ['<|end|>', '<|flush|>', '<|calls|>'], [101, 102]],
    ['a vocabulary with one of harmony’s tokens', ['<|return|>', '<|end|>'], [100, 101]],
  ])('are those of %s', (_name, texts, expected) => {
    expect(endOfTurnTokens(control(...texts)).sort()).toEqual(expected);
  });

  it('are control tokens: one that a text may spell ends nothing', () => {
    const text = (content: string) => ({ id: 7, content, special: false });
    expect(endOfTurnTokens([text('</s>'), text('<end_of_turn>'), text('[EOS]')])).toEqual([]);
    // Published files do not call all marks between bars special.
    expect(endOfTurnTokens([text('<|im_end|>')])).toEqual([7]);
    expect(endOfTurnTokens([text('<|tool_response>')])).toEqual([7]);
    expect(['<|tool_call>', '<channel|>', '<|"|>'].every((one) => isControlToken(text(one)))).toBe(true);
    expect(['<|>', '<a>', '<|a b>', 'x<channel|>'].some((one) => isControlToken(text(one)))).toBe(false);
  });

  it('are among the tokens given, each once, in any order', () => {
    const texts = ['<|im_end|>', '<|end|>', '<|return|>', '<|call|>', '<eos>', '<bos>', 'a', '<|x|>'];
    fc.assert(
      fc.property(fc.shuffledSubarray(texts), (some) => {
        const added = control(...some);
        const ends = endOfTurnTokens(added);
        expect(new Set(ends).size).toBe(ends.length);
        const isHarmony = ['<|return|>', '<|call|>'].every((one) => some.includes(one));
        const not = ['<bos>', 'a', '<|x|>', ...(isHarmony ? ['<|end|>'] : [])];
        expect(new Set(ends)).toEqual(
          new Set(added.filter(({ content }) => !not.includes(content)).map(({ id }) => id)),
        );
      }),
    );
  });

  it('begin with the tokenizer’s eos_token, whatever its text', () => {
    const files = byteLevelFiles();
    expect(new Tokenizer(files).endTokenIds).toEqual([300]);
    const tokenizerConfig = { ...files.tokenizerConfig, eos_token: '<tool>' };
    expect(new Tokenizer({ ...files, tokenizerConfig }).endTokenIds).toEqual([301, 300]);
    expect(new Tokenizer({ ...files, tokenizerConfig: {} }).endTokenIds).toEqual([300]);
  });
});
