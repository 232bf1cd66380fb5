const RATE = 8000;
const HEADER_BYTES = 44;

/** A WAV with one soft note per word of the text: 8 bits, mono, at most 30 seconds. */
export function renderSpeech(text: string): Uint8Array<ArrayBuffer> {
  const words = text.split(/\s+/).filter(Boolean).slice(0, 120);
  const perWord = RATE / 4;
  const samples = Math.max(1, words.length) * perWord;
  const bytes = new Uint8Array(HEADER_BYTES + samples);
  writeHeader(new DataView(bytes.buffer), samples);
  for (let at = 0; at < samples; at++) {
    const word = words[Math.floor(at / perWord)] ?? '';
    const pitch = 220 + 20 * (word.length % 12);
    const fade = Math.sin((Math.PI * (at % perWord)) / perWord);
    bytes[HEADER_BYTES + at] = 128 + Math.round(60 * fade * Math.sin((2 * Math.PI * pitch * at) / RATE));
  }
  return bytes;
}

function writeHeader(view: DataView, samples: number): void {
  const text = (at: number, value: string) => {
    for (let i = 0; i < value.length; i++) view.setUint8(at + i, value.charCodeAt(i));
  };
  text(0, 'RIFF');
  view.setUint32(4, HEADER_BYTES - 8 + samples, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE, true);
  view.setUint32(28, RATE, true);
  view.setUint16(32, 1, true);
  view.setUint16(34, 8, true);
  text(36, 'data');
  view.setUint32(40, samples, true);
}
