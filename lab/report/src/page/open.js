function show(){const e=location.hash&&document.getElementById(location.hash.slice(1));if(!e)return;for(let d=e;d;d=d.parentElement)if(d.tagName==="DETAILS")d.open=true;e.scrollIntoView()}
addEventListener("hashchange",show);addEventListener("load",show);
addEventListener("beforeprint",()=>document.querySelectorAll("details").forEach(d=>d.open=true));
