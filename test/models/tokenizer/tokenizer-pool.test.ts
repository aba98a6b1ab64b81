import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type * as TokenizerModule from '../../../models/tokenizer/index.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { byteLevelFiles, SCRIPTS } from './tiny-tokenizers.js';

// The pool's threads run compiled files, so this test takes the compiled module (npm run build:ts).
const compiled = new URL('../../../dist/models/tokenizer/index.js', import.meta.url).href;
const { Tokenizer, TokenizerBusyError, TokenizerError, TokenizerPool } = (await import(
  compiled
)) as typeof TokenizerModule;

const files = byteLevelFiles();
const tokenizer = new Tokenizer(files);
const folder = temporaryFolder('skein-tokenizer');
writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(files.tokenizerJson));
writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(files.tokenizerConfig));

const longText = SCRIPTS.join(' <|x|> ').repeat(20);

describe('TokenizerPool', () => {
  it.each([
    ['a folder', { directory: folder }],
    ['a copy', { files }],
  ])('encodes long texts in a thread as here, its tokenizer from %s', async (_, source) => {
    const pool = new TokenizerPool(tokenizer, source, { threshold: 100, workers: 2 });
    try {
      const texts = ['short', longText, 'x'.repeat(101), `${longText}!`, ''];
      const encoded = await Promise.all(texts.map((text) => pool.encode(text, { allowSpecial: false })));
      for (const [i, text] of texts.entries()) {
        expect(encoded[i]).toEqual(tokenizer.encode(text, { allowSpecial: false }));
      }
      const segments = [
        { text: '<|x|>', special: true },
        { text: longText, special: false },
      ];
      expect(await pool.encodeSegments(segments)).toEqual(tokenizer.encodeSegments(segments));
      expect(pool.jobs).toBe(0);
    } finally {
      await pool.close();
    }
  });

  it('takes no more than its limit', async () => {
    const pool = new TokenizerPool(tokenizer, { files }, { threshold: 10, maxJobs: 2 });
    try {
      const first = [pool.encode(longText), pool.encode(longText)];
      await expect(pool.encode(longText)).rejects.toThrow(TokenizerBusyError);
      await expect(pool.encode('short')).resolves.toEqual(tokenizer.encode('short'));
      await Promise.all(first);
      await expect(pool.encode(longText)).resolves.toEqual(tokenizer.encode(longText));
    } finally {
      await pool.close();
    }
  });

  it('fails what is pending when it is closed, and later texts', async () => {
    const pool = new TokenizerPool(tokenizer, { files }, { threshold: 10 });
    const pending = [pool.encode(longText), pool.encode(longText)];
    const results = Promise.allSettled(pending);
    await pool.close();
    for (const result of await results) expect(result.status).toBe('rejected');
    await expect(pool.encode(longText)).rejects.toThrow(TokenizerError);
  });

  it('reports a thread that cannot start, and goes on', async () => {
    const pool = new TokenizerPool(tokenizer, { directory: join(folder, 'missing') }, { threshold: 10 });
    try {
      await expect(pool.encode(longText)).rejects.toThrow(/has no tokenizer\.json/);
      await expect(pool.encode(longText)).rejects.toThrow(/has no tokenizer\.json/);
      expect(pool.jobs).toBe(0);
    } finally {
      await pool.close();
    }
  });
});
