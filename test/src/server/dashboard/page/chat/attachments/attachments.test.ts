import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AttachedText,
  type Attachment,
  bytesWords,
  contentLength,
  fileOf,
  type Picture,
  sizeWords,
} from '../../../../../../../src/server/dashboard/page/chat/attachments/attachment.js';
import {
  ATTACHMENT_LIMITS,
  tooMuch,
} from '../../../../../../../src/server/dashboard/page/chat/attachments/limits.js';
import { contentOf } from '../../../../../../../src/server/dashboard/page/chat/attachments/message-content.js';
import {
  joinedItems,
  joinedPages,
} from '../../../../../../../src/server/dashboard/page/chat/attachments/pdf/page-text.js';
import { partOf } from '../../../../../../../src/server/dashboard/page/chat/attachments/pdf/read-pdf.js';
import { beginningOf, decodedText, markedText } from '../../../../../../../src/texts/file-text.js';

const picture = (bytes = 4, content: string | null = 'iVBORw=='): Picture => ({
  ...{ kind: 'picture', id: 'p', name: 'goose.png', bytes, type: 'image/png', width: 2, height: 1, content },
});
const text = (content: string, more: Partial<AttachedText> = {}): AttachedText => ({
  ...{ kind: 'text', id: 't', name: 'a.txt', bytes: 9, part: '', characters: content.length, tokens: null },
  ...{ content, ...more },
});
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw==' } };

describe('the content of a message', () => {
  it('is the question alone where nothing is attached', () => {
    expect(contentOf('Why?', [], true)).toBe('Why?');
  });

  it('has pictures in front, and texts of files before the question', () => {
    const files: Attachment[] = [text('one'), picture(), text('two', { name: 'b.pdf', part: 'page 1 of 9' })];
    const words = 'File: a.txt\n```\none\n```\n\nFile: b.pdf (page 1 of 9)\n```\ntwo\n```\n\nWhy?';
    expect(contentOf('Why?', files, true)).toEqual([image, { type: 'text', text: words }]);
    expect(contentOf('Why?', files, false)).toBe(words);
    expect(contentOf('', [picture()], true)).toEqual([image]);
    expect(contentOf('', [text('one')], true)).toBe('File: a.txt\n```\none\n```');
  });

  it('has nothing of what is not kept any more', () => {
    expect(contentOf('Why?', [picture(4, null), { ...text(''), content: null }], true)).toBe('Why?');
  });

  it('fences a text so that it ends where it ends, whatever it has, under a name of one line', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a`\n~]{0,40}$/), (content) => {
        const marked = markedText(text(content, { name: 'a\n```\nb' }));
        const [head, fence, ...rest] = marked.split('\n');
        expect(head).toBe('File: a ``` b');
        expect(fence).toMatch(/^`{3,}$/);
        expect(rest.join('\n')).toBe(`${content}\n${fence}`);
        expect(content).not.toContain(fence);
      }),
    );
  });
});

describe('what may be attached', () => {
  it('is bounded over all of a conversation', () => {
    const { maxPictures, maxFileBytes } = ATTACHMENT_LIMITS;
    expect(tooMuch(Array<Attachment>(maxPictures).fill(picture(maxFileBytes / maxPictures)))).toBeNull();
    expect(tooMuch(Array<Attachment>(maxPictures + 1).fill(picture()))).toBe(
      'A conversation may have 16 pictures, and with this it would have 17.',
    );
    expect(tooMuch([picture(8e6), picture(5e6)])).toBe(
      'The pictures of a conversation may have 12 MB together, and with this they would have 13 MB.',
    );
    const texts = Array<Attachment>(2).fill(text('x'.repeat(ATTACHMENT_LIMITS.maxCharacters)));
    expect(tooMuch([picture(12e6), texts[0]!])).toBeNull();
    expect(tooMuch([picture(12e6), ...texts])).toMatch(/too long for one request/);
  });

  it('is told in bytes or tokens, and by its part', () => {
    expect([5, 9949, 20_400, 1_250_000, 12e6].map(bytesWords)).toEqual([
      '5 bytes',
      '9.9 kB',
      '20 kB',
      '1.3 MB',
      '12 MB',
    ]);
    expect(sizeWords(picture(20_400))).toBe('20 kB');
    expect(sizeWords(text('x'.repeat(1234)))).toBe('1,234 characters');
    expect(sizeWords(text('x', { tokens: 1 }))).toBe('1 token');
    expect(sizeWords(text('x', { tokens: 2048, part: 'pages 1 to 9 of 10' }))).toBe(
      '2,048 tokens, pages 1 to 9 of 10',
    );
  });

  it('has as many characters as its content', () => {
    for (const bytes of [1, 2, 3, 4, 100]) {
      expect(contentLength(picture(bytes))).toBe(Buffer.alloc(bytes).toString('base64').length);
    }
    expect(contentLength(text('abc'))).toBe(3);
  });

  it('is shown from its own bytes', async () => {
    const file = fileOf(picture())!;
    expect(file.type).toBe('image/png');
    expect(Buffer.from(await file.arrayBuffer()).toString('latin1')).toBe('\x89PNG');
    expect(fileOf(picture(4, null))).toBeNull();
  });
});

describe('plain text', () => {
  const bytesOf = (content: string, encoding: BufferEncoding) =>
    new Uint8Array(Buffer.from(content, encoding));

  it('is UTF-8, or UTF-16 that says so, with plain line breaks', () => {
    expect(decodedText(bytesOf('\ufeffG\u00e4nse\r\n\tfly\rhigh\f', 'utf8'))).toBe(
      'G\u00e4nse\n\tfly\nhigh\f',
    );
    expect(decodedText(bytesOf('\ufeffG\u00e4nse', 'utf16le'))).toBe('G\u00e4nse');
    const big = Uint8Array.from([0xfe, 0xff, 0, 0x47]);
    expect(decodedText(big)).toBe('G');
  });

  it.each([
    [Uint8Array.of(0x47, 0xe4, 0x6e)],
    [Uint8Array.of(0x50, 0x4b, 3, 4)],
    [Uint8Array.of(0x61, 0, 0x62)],
    [Uint8Array.of(0xff, 0xfe, 0x00, 0xd8)],
  ])('is not %s', (bytes) => {
    expect(decodedText(bytes)).toBeNull();
  });

  it('is cut between characters', () => {
    expect(beginningOf('abc', 3)).toBe('abc');
    expect(beginningOf('abc', 2)).toBe('ab');
    expect(beginningOf('a\u{1f986}c', 2)).toBe('a');
    expect(beginningOf('a\u{1f986}c', 3)).toBe('a\u{1f986}');
  });
});

describe('the text of a PDF', () => {
  it('is that of its pieces and pages, without empty ends', () => {
    const items = [
      { str: 'One', hasEOL: false },
      { str: ' goose. ', hasEOL: true },
      { str: '', hasEOL: true },
      { str: '', hasEOL: true },
      { str: 'Tw\0o', hasEOL: true },
    ];
    expect(joinedItems(items)).toBe('One goose.\n\nTwo');
    expect(joinedPages(['a', '', 'b'])).toBe('a\n\nb');
  });

  it('says which part of the file it is', () => {
    expect(partOf({ text: 'abc', read: 3, pages: 3 }, 3)).toEqual({ text: 'abc', part: '' });
    expect(partOf({ text: 'abc', read: 2, pages: 3 }, 3)).toEqual({ text: 'abc', part: 'pages 1 to 2 of 3' });
    expect(partOf({ text: 'abcd', read: 1, pages: 1 }, 3)).toEqual({
      text: 'abc',
      part: 'page 1 of 1, cut at its end',
    });
  });
});
