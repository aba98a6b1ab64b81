import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { allDocuments, readDocument, repository } from './documents.js';

/** A text that a person reads, and where it begins. */
export interface SpokenText {
  file: string;
  /** From 1. */
  line: number;
  text: string;
}

const ROOMS = [
  ...[
    'base',
    'callbacks',
    'cluster',
    'engine',
    'host',
    'kvcache',
    'loadgen',
    'models',
    'network',
    'scheduler',
  ],
  ...['src', 'tools', 'examples'],
];
const FRONT = [
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'BENCHMARKS.md',
];
const PAGE = 'src/server/dashboard/page/index.html';

const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ');

/** Lines of the documents' prose: without code, comments and the targets of links. */
export function documentTexts(): SpokenText[] {
  const files = [...FRONT, ...['docs', 'examples'].flatMap(allDocuments)];
  return files.flatMap((file) =>
    proseLines(readDocument(file)).map((text, i) => ({ file, line: i + 1, text })),
  );
}

/** What `documentTexts` reads of one document. */
export function proseLines(document: string): string[] {
  return document
    .replaceAll(/^ *```[\s\S]*?^ *```/gm, blank)
    .replaceAll(/<!--[\s\S]*?-->|`[^`\n]*`|(?<=\])\([^)\n]*\)/g, blank)
    .split('\n');
}

/** Lines of the page's own document, without its tags' names. */
export function pageTexts(): SpokenText[] {
  const lines = readFileSync(join(repository, PAGE), 'utf8').split('\n');
  return lines.map((text, i) => ({ file: PAGE, line: i + 1, text }));
}

/**
 * Literals and comments of all sources that have a word of a pattern at all: sentences of errors, helps of options and metrics, and
 * what a developer reads.
 */
export function sourceTexts(words: RegExp): SpokenText[] {
  return ROOMS.flatMap((room) =>
    readdirSync(join(repository, room), { recursive: true, encoding: 'utf8' })
      .filter((path) => /(?<!\.d)\.(ts|mjs|js)$/.test(path) && !path.includes('node_modules'))
      .map((path) => `${room}/${path.replaceAll('\\', '/')}`),
  ).flatMap((file) => {
    const source = readFileSync(join(repository, file), 'utf8');
    return words.test(source) ? wordsOf(file, source) : [];
  });
}

const LITERALS: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.StringLiteral,
  ts.SyntaxKind.NoSubstitutionTemplateLiteral,
  ts.SyntaxKind.TemplateHead,
  ts.SyntaxKind.TemplateMiddle,
  ts.SyntaxKind.TemplateTail,
]);
const COMMENTS: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.SingleLineCommentTrivia,
  ts.SyntaxKind.MultiLineCommentTrivia,
]);
const TRIVIA: ReadonlySet<ts.SyntaxKind> = new Set([
  ...COMMENTS,
  ...[ts.SyntaxKind.WhitespaceTrivia, ts.SyntaxKind.NewLineTrivia, ts.SyntaxKind.ShebangTrivia],
]);
/** Tokens after which a slash divides; after all others it begins a pattern. */
const VALUES: ReadonlySet<ts.SyntaxKind> = new Set([
  ...[ts.SyntaxKind.Identifier, ts.SyntaxKind.NumericLiteral, ts.SyntaxKind.StringLiteral],
  ...[ts.SyntaxKind.CloseParenToken, ts.SyntaxKind.CloseBracketToken, ts.SyntaxKind.CloseBraceToken],
  ...[ts.SyntaxKind.ThisKeyword, ts.SyntaxKind.NoSubstitutionTemplateLiteral, ts.SyntaxKind.TemplateTail],
]);

/**
 * Strings, parts of templates and comments of a source, line by line, without a single word in quotes, which is a value, and without
 * what a comment has in backticks.
 */
export function wordsOf(file: string, source: string): SpokenText[] {
  const scanner = ts.createScanner(ts.ScriptTarget.ESNext, false, ts.LanguageVariant.Standard, source);
  const texts: SpokenText[] = [];
  /** Open braces, from outside to inside: true for one of a template. */
  const braces: boolean[] = [];
  let last = ts.SyntaxKind.Unknown;
  const add = (whole: string) => {
    const first = source.slice(0, scanner.getTokenStart()).split('\n').length;
    for (const [i, text] of whole.split('\n').entries()) texts.push({ file, line: first + i, text });
  };
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (TRIVIA.has(kind)) {
      if (COMMENTS.has(kind)) add(scanner.getTokenText().replaceAll(/`[^`\n]*`/g, blank));
      continue;
    }
    if (kind === ts.SyntaxKind.SlashToken || kind === ts.SyntaxKind.SlashEqualsToken) {
      if (!VALUES.has(last)) kind = scanner.reScanSlashToken();
    } else if (kind === ts.SyntaxKind.OpenBraceToken) braces.push(false);
    else if (kind === ts.SyntaxKind.TemplateHead) braces.push(true);
    else if (kind === ts.SyntaxKind.CloseBraceToken) {
      const isTemplate = braces.at(-1) === true;
      if (isTemplate) kind = scanner.reScanTemplateToken(false);
      if (kind !== ts.SyntaxKind.TemplateMiddle) braces.pop();
    }
    last = kind;
    if (!LITERALS.has(kind)) continue;
    const whole = scanner.getTokenText();
    if (/^(['"`])\w+\1$/.test(whole)) continue;
    add(whole);
  }
  return texts;
}
