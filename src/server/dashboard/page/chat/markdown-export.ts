import { sizeWords } from './attachments/attachment.js';
import { MessageTree } from './message-tree.js';
import type { StoredConversation, StoredMessage } from './stored-conversation.js';
import type { ToolCall } from './tools/tool-call.js';

/** The branch of a conversation that the page shows, as a document in Markdown. Of files it has the names, of calls what was sent and what came back. */
export function markdownOf({ title, model, messages, leaf }: StoredConversation): string {
  const answered = model === null ? 'Answer' : oneLine(model);
  const parts = new MessageTree(messages)
    .path(leaf)
    .flatMap((message) => [
      `## ${message.role === 'user' ? 'Question' : answered}`,
      ...(message.attachments ?? []).map((file) => `*Attached: ${oneLine(file.name)} (${sizeWords(file)})*`),
      ...thoughtOf(message),
      ...(message.calls ?? []).flatMap(callParts),
      ...(message.text === '' ? [] : [message.text.trim()]),
    ]);
  return `${[`# ${oneLine(title)}`, ...parts].join('\n\n')}\n`;
}

function thoughtOf({ reasoning = '' }: StoredMessage): string[] {
  if (reasoning === '') return [];
  return [reasoning.trim().replace(/^/gm, '> ')];
}

function callParts({ server, name, arguments: args, output, error, isDenied }: ToolCall): string[] {
  const what = `*Call of ${oneLine(name)} of ${oneLine(server)}${isDenied ? ', which was denied' : ''}:*`;
  return [what, fenced(args), ...[output, error].flatMap((text) => (text === null ? [] : [fenced(text)]))];
}

/** A block of code, with a fence that is longer than any in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** A name for the file, of letters that any system takes. */
export function fileNameOf(title: string): string {
  const name = title
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 60);
  return `${name === '' ? 'chat' : name}.md`;
}
