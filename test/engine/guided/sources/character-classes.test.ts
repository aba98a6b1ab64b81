import { expect, it } from 'vitest';
import { CLASSES, LINE_ENDS } from '../../../../engine/guided/sources/character-classes.js';

/** The first and the last character of each range that an expression matches, surrogates left out. */
function rangesOf(expression: RegExp): [number, number][] {
  const ranges: [number, number][] = [];
  for (let codePoint = 0; codePoint <= 0x10ffff; codePoint++) {
    const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
    if (isSurrogate || !expression.test(String.fromCodePoint(codePoint))) continue;
    const last = ranges.at(-1);
    if (last?.[1] === codePoint - 1) last[1] = codePoint;
    else ranges.push([codePoint, codePoint]);
  }
  return ranges;
}

it.each(['d', 'D', 'w', 'W', 's', 'S'])('\\%s has the characters that it has in JavaScript', (letter) => {
  expect(CLASSES[letter]).toEqual(rangesOf(new RegExp(`\\${letter}`, 'u')));
});

it('. leaves out the characters that end a line in JavaScript', () => {
  expect(LINE_ENDS).toEqual(rangesOf(/^(?!.)[\s\S]$/u));
});
