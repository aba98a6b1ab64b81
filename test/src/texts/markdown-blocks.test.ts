import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blocksOf } from '../../../src/texts/markdown-blocks.js';
import { draws } from '../../support/scale.js';

/** The parser's stack has room for some 2,000; the time that it takes grows with the square. */
const DEEP = `${'>'.repeat(3_000)} deep`;
const LINK = '[safe](https://elsewhere.example/)';
const CODE = '```js\nfly();\n\nland();\n```';

const typesOf = (text: string) => blocksOf(text).flatMap(({ type }) => (type === 'space' ? [] : [type]));

describe('blocks of an answer', () => {
  it('are read around a paragraph that is nested too deeply, which is one text', () => {
    expect(typesOf(`# Geese\n\n${CODE}\n\n${DEEP}\n\n${LINK}\n\n${DEEP}\n\n- one\n- two`)).toEqual([
      'heading',
      'code',
      'paragraph',
      'paragraph',
      'paragraph',
      'list',
    ]);
    const [text, link] = blocksOf(`${DEEP}\n\n${LINK}`);
    expect(text).toMatchObject({ type: 'paragraph', tokens: [{ type: 'text', raw: `${DEEP}\n\n` }] });
    expect(link).toMatchObject({ type: 'paragraph', tokens: [{ type: 'link' }] });
  });

  it('add up to the text, whatever stands in it', () => {
    const paragraph = fc.constantFrom(DEEP, LINK, CODE, '# Geese', '- one\n- two', '> quoted', 'plain', '');
    fc.assert(
      fc.property(
        fc.array(paragraph, { maxLength: 5 }),
        fc.constantFrom('\n', '\n\n', '\n\n\n'),
        (all, by) => {
          const text = all.join(by);
          expect(
            blocksOf(text)
              .map(({ raw }) => raw)
              .join(''),
          ).toBe(text);
        },
      ),
      { numRuns: draws(6) },
    );
  });
});
