import { isObject } from '../../../base/option-values.js';
import type { CallOutcome } from './tool-server.js';

/** The result of a call as the model reads it: its texts, and a note in place of what is no text. */
export function outcomeOf(result: Readonly<Record<string, unknown>>): CallOutcome {
  const { content, structuredContent, isError } = result;
  const parts = Array.isArray(content) ? content.map(partText) : [];
  if (parts.length === 0 && structuredContent !== undefined) parts.push(JSON.stringify(structuredContent));
  return { text: parts.join('\n'), isError: isError === true };
}

function partText(part: unknown): string {
  if (!isObject(part)) return '[a part that is no object, left out]';
  const { type, text, mimeType, resource, uri, name } = part;
  if (type === 'text' && typeof text === 'string') return text;
  if (type === 'resource' && isObject(resource)) {
    if (typeof resource.text === 'string') return resource.text;
    return leftOut('resource', resource.mimeType);
  }
  if (type === 'resource_link' && typeof uri === 'string')
    return typeof name === 'string' ? `${name}: ${uri}` : uri;
  return leftOut(type, mimeType);
}

function leftOut(type: unknown, mimeType: unknown): string {
  const kind = typeof type === 'string' ? type.slice(0, 32) : 'part';
  return typeof mimeType === 'string'
    ? `[${kind}, ${mimeType.slice(0, 64)}, left out]`
    : `[${kind}, left out]`;
}
