import { describe, expect, it } from 'vitest';
import { CharacterMaps } from '../../../../../../../src/server/dashboard/page/chat/attachments/pdf/character-maps.js';
import type { PdfAnswer } from '../../../../../../../src/server/dashboard/page/chat/attachments/pdf/pdf-messages.js';
import { readText } from '../../../../../../../src/server/dashboard/page/chat/attachments/pdf/read-text.js';
import { packedCMaps } from '../../../../../../../tools/pack-cmaps.mjs';
import { mappedFont, pdfOf } from '../../../support/pdf-of.js';

const fileOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;

/** The text of a file, and how often its reader asked for character maps. */
async function textOf(pdf: Buffer): Promise<{ text: string; asked: number }> {
  let [text, asked] = ['', 0];
  const say = (answer: PdfAnswer) => {
    if (answer.kind === 'text') text = answer.text;
  };
  await readText({ data: fileOf(pdf), maxPages: 9, maxCharacters: 999 }, say, async () => {
    asked++;
    return fileOf(packedCMaps());
  });
  return { text, asked };
}

describe('the text of a PDF file', () => {
  it.each([
    ['Japanese', '90ms-RKSJ-H', 'Japan1', '93fa967b8cea', '日本語'],
    ['Chinese', 'GBK-EUC-H', 'GB1', 'd6d0cec4', '中文'],
    ['Taiwanese', 'ETen-B5-H', 'CNS1', 'a4a4a4e5', '中文'],
    ['Korean', 'KSCms-UHC-H', 'Korea1', 'c7d1b1db', '한글'],
    ['upright Japanese', 'UniJIS-UTF16-V', 'Japan1', '65e5672c', '日本'],
  ])('is read in %s fonts that name a map outside of it', async (_, map, ordering, bytes, expected) => {
    const { text, asked } = await textOf(pdfOf([bytes, bytes], false, mappedFont(map, ordering)));
    expect(text).toBe(`${expected}\n\n${expected}`);
    expect(asked).toBe(1);
  });

  it('needs no maps in others', async () => {
    expect(await textOf(pdfOf(['One goose.']))).toEqual({ text: 'One goose.', asked: 0 });
  });
});

it('maps that are not there are named', () => {
  expect(() => new CharacterMaps(fileOf(packedCMaps())).of('None.bcmap')).toThrow(
    'There is no character map None.bcmap.',
  );
});
