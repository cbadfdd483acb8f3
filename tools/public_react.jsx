// A page with the public subscriber for React on it, as its own documentation shows it.
import { createRoot } from "react-dom/client";
import { AAEPSubscriber } from "public-subscriber";

const endpoint = new URLSearchParams(window.location.search).get("endpoint");
createRoot(document.getElementById("root")).render(<AAEPSubscriber endpoint={endpoint} showEventLog={true} />);
