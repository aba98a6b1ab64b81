import { el } from './dom.js';

const NAME = 'view';
const CHAT = 'chat';

/** Switch of the view: the whole page, or the chat alone. The address has it (`?view=chat`), so that it can be kept and sent. */
export function chatOnlySwitch(): HTMLButtonElement {
  const root = document.documentElement;
  const button = el('button', { class: 'button quiet', type: 'button' }, ['Chat only'], {
    click: () => {
      const address = new URL(location.href);
      if (root.dataset.view === CHAT) address.searchParams.delete(NAME);
      else address.searchParams.set(NAME, CHAT);
      history.replaceState(null, '', address);
      show();
    },
  });
  const show = () => {
    const isAlone = new URL(location.href).searchParams.get(NAME) === CHAT;
    if (isAlone) root.dataset.view = CHAT;
    else delete root.dataset.view;
    button.setAttribute('aria-pressed', String(isAlone));
  };
  show();
  return button;
}
