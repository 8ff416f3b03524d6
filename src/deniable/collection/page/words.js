// The page's own words. A survey's are in the survey; a language that is not here is shown in English.

const WORDS = {
  en: {
    language: "Language",
    how: "How your answers are protected",
    howWords: "For each private question your device throws a coin that nobody else can see. Only what comes out is sent. "
      + "So nobody who has what was sent, not even whoever runs this survey, knows what you answered; over many people the truth can "
      + "still be counted. Only whoever serves you this page could have changed it, and see what you type.",
    coin: "Your device throws a coin: with {kept} your answer is kept, otherwise one of all {points} answers is drawn, yours included.",
    lineup: "Your device shows a line-up of {size} answers. With {kept} it is made around yours, otherwise without looking.",
    kept: "your answer", drawn: "a random answer", around: "made around your answer", blind: "made without looking",
    belief: "Whoever thought this 10 % likely of you can become at most {after} sure.",
    private: "Private: changed at random before it is sent.",
    public: "Not private: this answer is sent as it is.",
    sheet: "All private answers together: whoever thought your answers 10 % likely can become at most {after} sure of all of them.",
    none: "No answer", choose: "Please choose one.", number: "Please give a number from {low} to {high}.",
    date: "Please give a date from {low} to {high}.", rounded: "It is rounded to steps of {step}.",
    code: "Your one-time code", codeWrong: "Please give your code, such as ABCD-EFGH-IJKL-MNOP.",
    review: "Show what will be sent", preview: "This will be sent",
    previewWords: "This, and nothing else, leaves your device. It may or may not be what you answered.",
    oneOf: "We will send: one of these {size}", oneValue: "We will send",
    oneOfSent: "We sent: one of these {size}", oneValueSent: "We sent", asItIs: "Sent as it is",
    send: "Send", change: "Change my answers", sending: "Sending …", missing: "Some answers are missing.",
    done: "Thank you", doneWords: "This was sent. What you really answered was never stored or sent.",
    waiting: "You are offline, or the server cannot be reached. What is shown below is kept on this device and sent as soon as it can be.",
    refused: "The server did not take it: ", again: "Send again (it counts once)", known: "It had arrived before, and counts once.",
    loading: "Loading the survey …", offline: "The survey cannot be reached. Try again when you are online.",
    alarm: "Do not answer. ", tampered: "This is not the survey that your invitation names: its words or its noise were changed.",
    changed: "This survey was changed since you last opened it here: its words or its noise are others.",
    weak: "The survey protects you less than it says.", foot: "Fingerprint of this survey: ",
    yes: "yes", no: "no",
  },
  de: {
    language: "Sprache",
    how: "Wie Ihre Antworten geschützt sind",
    howWords: "Bei jeder vertraulichen Frage wirft Ihr Gerät eine Münze, die sonst niemand sieht. Gesendet wird nur, was dabei "
      + "herauskommt. So weiß niemand, der das Gesendete hat, auch nicht wer die Umfrage betreibt, was Sie geantwortet haben; über viele "
      + "Menschen lässt sich trotzdem richtig zählen. Nur wer Ihnen diese Seite liefert, könnte sie verändert haben und sehen, was Sie eingeben.",
    coin: "Ihr Gerät wirft eine Münze: mit {kept} bleibt Ihre Antwort, sonst wird eine von allen {points} Antworten gezogen, Ihre eingeschlossen.",
    lineup: "Ihr Gerät zeigt eine Reihe von {size} Antworten. Mit {kept} wird sie um Ihre herum gebildet, sonst ohne hinzusehen.",
    kept: "Ihre Antwort", drawn: "eine zufällige", around: "um Ihre Antwort herum", blind: "ohne hinzusehen",
    belief: "Wer das bei Ihnen für 10 % wahrscheinlich hielt, kann höchstens zu {after} sicher werden.",
    private: "Vertraulich: wird vor dem Senden zufällig verändert.",
    public: "Nicht vertraulich: diese Antwort wird gesendet, wie sie ist.",
    sheet: "Alle vertraulichen Antworten zusammen: wer Ihre Antworten für 10 % wahrscheinlich hielt, kann sich aller zusammen höchstens zu {after} sicher werden.",
    none: "Keine Antwort", choose: "Bitte wählen Sie.", number: "Bitte eine Zahl von {low} bis {high}.",
    date: "Bitte ein Datum von {low} bis {high}.", rounded: "Es wird auf Schritte von {step} gerundet.",
    code: "Ihr Einmal-Code", codeWrong: "Bitte geben Sie Ihren Code ein, etwa ABCD-EFGH-IJKL-MNOP.",
    review: "Zeigen, was gesendet wird", preview: "Das wird gesendet",
    previewWords: "Dies, und sonst nichts, verlässt Ihr Gerät. Es kann Ihre Antwort sein oder nicht.",
    oneOf: "Wir senden: eine von diesen {size}", oneValue: "Wir senden",
    oneOfSent: "Wir haben gesendet: eine von diesen {size}", oneValueSent: "Wir haben gesendet", asItIs: "Gesendet, wie es ist",
    send: "Senden", change: "Antworten ändern", sending: "Wird gesendet …", missing: "Einige Antworten fehlen.",
    done: "Danke", doneWords: "Das wurde gesendet. Was Sie wirklich geantwortet haben, wurde nie gespeichert oder gesendet.",
    waiting: "Sie sind offline, oder der Server ist nicht erreichbar. Was unten steht, bleibt auf diesem Gerät und wird gesendet, sobald es geht.",
    refused: "Der Server hat es nicht angenommen: ", again: "Noch einmal senden (zählt nur einmal)", known: "Es war schon angekommen und zählt einmal.",
    loading: "Die Umfrage wird geladen …", offline: "Die Umfrage ist nicht erreichbar. Versuchen Sie es online noch einmal.",
    alarm: "Antworten Sie nicht. ", tampered: "Das ist nicht die Umfrage, die Ihre Einladung nennt: Wörter oder Zufall wurden verändert.",
    changed: "Diese Umfrage wurde verändert, seit Sie sie hier zuletzt geöffnet haben.",
    weak: "Die Umfrage schützt Sie weniger, als sie sagt.", foot: "Fingerabdruck dieser Umfrage: ",
    yes: "ja", no: "nein",
  },
};

export function wordsOf(language) {
  const own = WORDS[language] ?? WORDS[language.split("-")[0]] ?? WORDS.en;
  return (name, values = {}) =>
    own[name].replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
}
