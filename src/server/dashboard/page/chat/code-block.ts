import { el } from '../dom.js';
import { copyText } from './copy-text.js';

export interface CodeBlock {
  element: HTMLElement;
  text: Text;
}

/** Element with code, its language, and a button that copies the code. */
export function codeBlock(code: string, info: string): CodeBlock {
  const text = new Text(code);
  const language = /^[\w+#.-]{1,24}/.exec(info)?.[0] ?? '';
  const copy = el('button', { class: 'button quiet code-copy', type: 'button' }, ['Copy'], {
    click: async () => {
      copy.textContent = (await copyText(text.data)) ? 'Copied' : 'Not copied';
      setTimeout(() => {
        copy.textContent = 'Copy';
      }, 1500);
    },
  });
  copy.setAttribute('aria-label', language === '' ? 'Copy code' : `Copy ${language} code`);
  const element = el('div', { class: 'code-block' }, [
    el('div', { class: 'code-head' }, [el('span', {}, [language]), copy]),
    el('pre', { tabindex: '0', role: 'region', 'aria-label': 'Code' }, [el('code', {}, [text])]),
  ]);
  return { element, text };
}
