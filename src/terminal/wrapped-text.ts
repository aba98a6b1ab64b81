/**
 * Words of a text in lines of at most `width` characters. A longer word is cut, after a sign that divides it
 * where there is one.
 */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text
    .split(/\s+/)
    .filter(Boolean)
    .flatMap((one) => partsOf(one, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (longer.length <= width) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = word;
  }
  if (line !== '' || lines.length === 0) lines.push(line);
  return lines;
}

function partsOf(word: string, width: number): string[] {
  if (word.length <= width) return [word];
  const sign = word.slice(0, width).search(/[|,/=:][^|,/=:]*$/);
  const end = sign > 0 ? sign + 1 : width;
  return [word.slice(0, end), ...partsOf(word.slice(end), width)];
}

/** Greatest width of terms with their descriptions next to them; a longer term has a line for itself. */
const WIDEST_TERM = 34;
/** Least width of descriptions next to their terms; narrower ones go below. */
const NARROWEST_DESCRIPTION = 44;
const INDENT = 2;
const INDENT_BELOW = 6;

/** A term and its description, side by side where there is room, else one below the other. */
export function wrappedItem(term: string, description: string, termWidth: number, width: number): string {
  const column = Math.min(termWidth, WIDEST_TERM) + 2 * INDENT;
  const isBeside = width - column >= NARROWEST_DESCRIPTION;
  const indent = isBeside ? column : INDENT_BELOW;
  const head = wrapped(term, Math.max(1, width - INDENT)).map((line) => ' '.repeat(INDENT) + line);
  const lines =
    description === ''
      ? []
      : wrapped(description, Math.max(1, width - indent)).map((line) => ' '.repeat(indent) + line);
  const fits = isBeside && head.length === 1 && head[0]!.length + INDENT <= column;
  const [first, ...rest] = lines;
  if (!fits || first === undefined) return [...head, ...lines].join('\n');
  return [head[0]! + first.slice(head[0]!.length), ...rest].join('\n');
}

/**
 * A text of paragraphs and lists at a width. A line that begins with blanks is an item of a list, `  TERM
 * description`; a line indented further continues the item. Other lines make paragraphs, which end at an empty line, or
 * at a line that ends a sentence.
 */
export function wrappedText(text: string, width: number): string {
  return blocksOf(text)
    .map((block) => {
      if (block.kind === 'blank') return '';
      if (block.kind === 'paragraph') return wrapped(block.text, width).join('\n');
      return wrappedItem(block.term, block.text, block.termWidth, width);
    })
    .join('\n');
}

type Block =
  | { kind: 'blank' }
  | { kind: 'paragraph'; text: string; isOpen: boolean }
  | { kind: 'item'; term: string; text: string; indent: number; termWidth: number };

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  for (const line of text.split('\n')) {
    const last = blocks.at(-1);
    const indent = /^ */.exec(line)![0].length;
    if (line.trim() === '') blocks.push({ kind: 'blank' });
    else if (indent === 0) {
      const isOpen = !/[.:}]$/.test(line);
      if (last?.kind === 'paragraph' && last.isOpen) {
        last.text += ` ${line}`;
        last.isOpen = isOpen;
      } else blocks.push({ kind: 'paragraph', text: line, isOpen });
    } else if (last?.kind === 'item' && indent > last.indent) last.text += ` ${line.trim()}`;
    else {
      const [term, ...rest] = line.trim().split(/ {2,}/);
      blocks.push({ kind: 'item', term: term!, text: rest.join(' '), indent, termWidth: 0 });
    }
  }
  const items = blocks.filter((block) => block.kind === 'item');
  const termWidth = Math.max(0, ...items.map(({ term }) => term.length));
  for (const item of items) item.termWidth = termWidth;
  return blocks;
}
