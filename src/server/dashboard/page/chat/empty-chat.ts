import { el } from '../dom.js';

/** Name of the model in the package, which knows little stories and nothing else. */
const DEMO_MODEL = 'gosling';
const STORIES = [
  'Tell me a story about a cat',
  'A story about a robot who is afraid of the dark',
  'Who are you?',
];
const GENERAL = [
  'Why do geese fly in a V?',
  'Explain in-flight batching in three sentences',
  'A table of four planets with their moons',
];

/** Element shown in a chat before the first question. */
export function emptyChat(model: string | null, ask: (text: string) => void): HTMLElement {
  const isDemo = model === DEMO_MODEL;
  const text = isDemo
    ? 'Gosling is the small model that comes with Skein. It writes little stories, and knows nothing else.'
    : 'Everything you write stays between this page and this server.';
  const suggestions = (isDemo ? STORIES : GENERAL).map((suggestion) =>
    el('button', { class: 'button suggestion', type: 'button' }, [suggestion], {
      click: () => ask(suggestion),
    }),
  );
  return el('div', { class: 'chat-empty' }, [
    el('p', { class: 'chat-empty-title' }, ['Say something']),
    el('p', { class: 'chat-empty-text' }, [text]),
    el('div', { class: 'suggestions', hidden: model === null }, suggestions),
  ]);
}
