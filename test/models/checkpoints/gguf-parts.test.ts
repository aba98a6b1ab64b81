import { appendFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { type TypedValue, writeGguf, writeGgufParts } from '../../../tools/support/gguf-writer.js';
import { freshFolders } from '../../support/fresh-folders.js';
import { ggufTensors, TINY_GGUF_METADATA, writeTinyGguf } from '../../support/tiny-checkpoint.js';

const fresh = freshFolders('skein-parts');
const nameOf = (part: number, count = 3) =>
  `tiny-${String(part).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`;
const u16 = (value: number): TypedValue => ({ type: 'u16', value });

/** A folder with the tiny model in three parts. */
function split(change?: Parameters<typeof writeGgufParts>[4]): string {
  const folder = fresh();
  writeGgufParts(join(folder, 'tiny'), TINY_GGUF_METADATA, ggufTensors(), 3, change);
  return folder;
}

describe('a GGUF in parts', () => {
  it('is the whole model by its folder and by any of its parts', () => {
    const whole = openCheckpoint(writeTinyGguf(join(fresh(), 'tiny.gguf')));
    const folder = split();
    for (const path of [folder, ...[1, 2, 3].map((part) => join(folder, nameOf(part)))]) {
      const found = openCheckpoint(path);
      expect(found.config).toEqual(whole.config);
      expect(found.tokenizer).toEqual(whole.tokenizer);
      expect([...found.tensors.keys()]).toEqual([...whole.tensors.keys()]);
      expect(new Set([...found.tensors.values()].map(({ file }) => file)).size).toBe(3);
    }
  });

  it('changes its hash with each part', () => {
    const folder = split();
    const before = openCheckpoint(folder).sourceHash;
    appendFileSync(join(folder, nameOf(3)), 'x');
    expect(openCheckpoint(folder).sourceHash).not.toBe(before);
  });

  it('is refused where a part is missing, by the part', () => {
    const folder = split();
    rmSync(join(folder, nameOf(2)));
    expect(() => openCheckpoint(folder)).toThrow(
      `${folder}: ${nameOf(2)} is missing; the model has 3 parts.`,
    );
    rmSync(join(folder, nameOf(3)));
    renameSync(join(folder, nameOf(1)), join(folder, nameOf(1, 99_999)));
    expect(() => openCheckpoint(folder)).toThrow(
      `tiny-00002-of-99999.gguf is missing; the model has 99999 parts.`,
    );
  });

  it.each<[string, Parameters<typeof split>[0], RegExp]>([
    [
      'another number',
      (m, place) => {
        if (place === 1) m['split.no'] = u16(2);
      },
      /00002-of-00003\.gguf: split\.no should be 1, found 2\.$/,
    ],
    [
      'no number',
      (m, place) => {
        if (place === 2) delete m['split.no'];
      },
      /00003-of-00003\.gguf: split\.no should be 2, found nothing\.$/,
    ],
    [
      'another count',
      (m) => {
        m['split.count'] = u16(4);
      },
      /split\.count should be 3, the number of parts in its name, found 4\.$/,
    ],
    [
      'other tensors',
      (m) => {
        m['split.tensors.count'] = { type: 'i32', value: 9 };
      },
      /split\.tensors\.count should be \d+, the number of tensors in all parts, found 9\.$/,
    ],
  ])('is refused with %s', (_, change, message) => {
    expect(() => openCheckpoint(split(change))).toThrow(message);
  });

  it('is refused by a name that has no such part', () => {
    const folder = split();
    renameSync(join(folder, nameOf(1)), join(folder, 'tiny-00000-of-00003.gguf'));
    expect(() => openCheckpoint(join(folder, 'tiny-00000-of-00003.gguf'))).toThrow(
      'there is no part 00000 of 00003',
    );
  });
});

describe('a folder of several GGUFs', () => {
  const metadata = (entries: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(entries).map(([key, value]) => [key, { type: 'string', value } satisfies TypedValue]),
    );

  it('is the one that is a model, beside adapters and what sees for it', () => {
    const folder = fresh();
    writeTinyGguf(join(folder, 'tiny-Q8_0.gguf'));
    writeGguf(join(folder, 'mmproj-tiny.gguf'), metadata({ 'general.architecture': 'clip' }), []);
    writeGguf(join(folder, 'tower.gguf'), metadata({ 'general.architecture': 'clip' }), []);
    writeGguf(join(folder, 'geese.gguf'), metadata({ 'general.type': 'adapter' }), []);
    expect(openCheckpoint(folder).config.numLayers).toBe(2);
  });

  it('is refused where none is a model, or several are', () => {
    const none = fresh();
    for (const name of ['a', 'b'])
      writeGguf(join(none, `${name}.gguf`), metadata({ 'general.type': 'adapter' }), []);
    expect(() => openCheckpoint(none)).toThrow(
      'holds 2 GGUF files (a.gguf, b.gguf), none of which is a model',
    );
    const several = fresh();
    for (const name of ['a', 'b']) writeTinyGguf(join(several, `${name}.gguf`));
    expect(() => openCheckpoint(several)).toThrow(
      'holds 2 GGUF files (a.gguf, b.gguf); name the one you mean.',
    );
  });
});
